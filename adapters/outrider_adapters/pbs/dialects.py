"""Queries to the two families of PBS, and parsers of their answers."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol
from xml.parsers import expat

from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import CommandError, Commands

# -- torque ----------------------------------------------------------------------------------------
# Torque prints XML: jobs (``qstat -x``) and nodes (``pbsnodes -x``).
#
# It has no document type and no entities; an answer that declares one is rejected.

Attributes = dict[str, str]

_MAX_DEPTH: Final = 4
_TORQUE_USER_TEXTS: Final = frozenset({"Variable_List", "Job_Name", "submit_args"})
"""Long attributes that users write; none is read."""


def xml_entries(text: str, element: str, name: str) -> dict[str, Attributes]:
    """Parse an answer into jobs or nodes by name.

    Args:
        text: output of the command; empty where there are none.
        element: element of one entry: ``Job`` or ``Node``.
        name: the child element with its name: ``Job_Id`` or ``name``.

    Raises:
        ValueError: it is not such an answer.
    """
    if not text.strip():
        return {}
    collector = _Collector(element)
    parser = expat.ParserCreate()
    parser.StartElementHandler = collector.start
    parser.EndElementHandler = collector.end
    parser.CharacterDataHandler = collector.text
    parser.EntityDeclHandler = _refuse
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"not XML: {error}") from error
    return {one[name]: one for one in collector.found if name in one}


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type or an entity, which Torque never does")


class _Collector:
    """Collector of elements of one kind during parsing."""

    def __init__(self, element: str) -> None:
        self.found: list[Attributes] = []
        self._element = element
        self._path: list[str] = []
        self._words: list[str] = []

    def start(self, name: str, _: dict[str, str]) -> None:
        """Handle the start of an element."""
        if len(self._path) >= _MAX_DEPTH:
            raise ValueError(f"<{name}> is nested deeper than Torque nests")
        self._path.append(name)
        self._words = []
        if len(self._path) == 2 and name == self._element:
            self.found.append({})

    def text(self, words: str) -> None:
        """Handle text inside of an element."""
        self._words.append(words)

    def end(self, name: str) -> None:
        """Handle the end of an element; the children of a collected one become its attributes."""
        inner = self._path[2:]
        if (
            self._path[1:2] == [self._element]
            and inner
            and not _TORQUE_USER_TEXTS.intersection(inner)
        ):
            words = "".join(self._words).strip()
            if words:
                self.found[-1][".".join(inner)] = words
        self._path.pop()
        self._words = []


# -- openpbs ---------------------------------------------------------------------------------------
# OpenPBS prints JSON, which is sometimes invalid.
#
# ``qstat -F json`` of some versions writes the users' environments (``Variable_List``) and numbers
# with leading zeros unescaped, and the whole is not valid JSON. It puts each member on a separate
# line, though, so invalid members are left out line by line, and the users' environments are
# never read at all.


_USER_TEXTS: Final = frozenset({"Variable_List", "Submit_arguments", "Job_Name", "Error_Path"})
"""Long attributes that users write; none is read."""

_MEMBER: Final = re.compile(r'(?P<indent>[ \t]*)"(?P<key>[^"\\]{1,255})":[ ]?(?P<value>.*)')
_CLOSES: Final = re.compile(r"(?P<indent>[ \t]*)\},?\s*")


def json_entries(text: str, members: str) -> tuple[dict[str, Attributes], list[str]]:
    """Parse an answer into jobs or nodes by name.

    Args:
        text: output of the command.
        members: key of the entries: ``Jobs`` or ``nodes``.

    Returns:
        their attributes, and the names of the rejected: one of their attributes comes
        twice, with different values.

    Raises:
        ValueError: it is not such an answer at all.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        return _parsed_by_line(text, members)
    found = answer.get(members) if isinstance(answer, dict) else None
    if found is None and isinstance(answer, dict) and "timestamp" in answer:
        return {}, []  # it omits the key if there are none
    if not isinstance(found, dict):
        raise ValueError(f"no {members!r} in the output")
    whole = {name: dict(_flat(ad)) for name, ad in found.items() if isinstance(ad, dict)}
    return whole, []


def _flat(ad: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in ad.items():
        if key in _USER_TEXTS:
            continue
        if isinstance(value, dict):
            if not prefix:
                yield from _flat(value, f"{key}.")
        elif isinstance(value, list):
            yield prefix + key, ",".join(map(str, value))
        else:
            yield prefix + key, str(value)


def _parsed_by_line(text: str, members: str) -> tuple[dict[str, Attributes], list[str]]:
    """Parse an answer line by line, as it is not valid JSON."""
    found: dict[str, Attributes] = {}
    twice: set[str] = set()
    path: list[tuple[str, str]] = []  # indentation and key of each object that is open
    for line in text.split("\n"):
        if path and (closed := _CLOSES.fullmatch(line)):
            at = next((n for n, (i, _) in enumerate(path) if i == closed["indent"]), None)
            if at is not None:
                del path[at:]
            continue
        member = _MEMBER.fullmatch(line)
        keys = [key for _, key in path]
        if member is None or (keys[2:3] and keys[2] in _USER_TEXTS):
            continue
        key, value = member["key"], member["value"].strip()
        if value == "{":
            path.append((member["indent"], key))
            if keys == [members]:
                if key in found:
                    twice.add(key)
                found.setdefault(key, {})
        elif keys[:1] == [members] and 2 <= len(keys) <= 3 and key not in _USER_TEXTS:
            name = ".".join([*keys[2:], key])
            parsed = _plain(value.removesuffix(","))
            if found[keys[1]].setdefault(name, parsed) != parsed:
                twice.add(keys[1])
    if not found and f'"{members}"' not in text:
        raise ValueError(f"no {members!r} in the output")
    return {name: ad for name, ad in found.items() if name not in twice}, sorted(twice)


def _plain(value: str) -> str:
    try:
        read = json.loads(value)
    except ValueError:
        return value.strip('"')
    return str(read)


# -- dialects --------------------------------------------------------------------------------------

_MAX_JOBS_PER_QUERY: Final = 200
"""Maximum number of jobs in one query, since the length of a command line is limited."""


class Answer(NamedTuple):
    """Jobs or nodes by name, and the names of those that cannot be parsed."""

    entries: dict[str, Attributes]
    rejected: list[str]


class Dialect(Protocol):
    """Queries in the language of one PBS family.

    Attributes:
        name: as in the settings.
        is_torque: whether exit codes and times are Torque's.
    """

    name: str
    is_torque: bool

    def jobs(self) -> Answer:
        """Return all jobs in the queue, with the jobs of arrays listed separately."""
        ...

    def ended(self, jobs: list[str]) -> Answer:
        """Return those of these jobs whose end the server still knows."""
        ...

    def nodes(self) -> Answer:
        """Return all nodes of the server."""
        ...


def pbs_commands(settings: PBSSettings, **variables: str) -> Commands:
    """Return the commands of a server, with more variables in their environment."""
    environment = os.environ | variables
    if settings.server is not None:
        environment |= {"PBS_DEFAULT": settings.server, "PBS_SERVER": settings.server}
    return Commands(settings.commands, environment, settings.answer_within_s)


def dialect_of(settings: PBSSettings, commands: Commands) -> Dialect:
    """Return the dialect that is set, or that the commands report.

    Raises:
        CommandError: qstat is not installed.
    """
    if settings.dialect == "openpbs":
        return OpenPBS(commands)
    if settings.dialect == "torque":
        return Torque(commands)
    try:
        version = commands.run("qstat", "--version")
    except CommandError as error:
        if "cannot be run" in str(error):
            raise
        return Torque(commands)  # its qstat prints the version on standard error
    return OpenPBS(commands) if "pbs_version" in version.lower() else Torque(commands)


class OpenPBS:
    """Dialect of OpenPBS and PBS Professional since 14: ``-F json``."""

    name = "openpbs"
    is_torque = False

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def jobs(self) -> Answer:
        """Implement `Dialect.jobs` by ``qstat``."""
        return self._query("Jobs", "qstat", "-t", "-f", "-F", "json")

    def ended(self, jobs: list[str]) -> Answer:
        """Implement `Dialect.ended`; empty if the server keeps no history of jobs."""
        found: dict[str, Attributes] = {}
        rejected: list[str] = []
        for first in range(0, len(jobs), _MAX_JOBS_PER_QUERY):
            names = jobs[first : first + _MAX_JOBS_PER_QUERY]
            # a job that it no longer knows makes it fail, but the others are printed
            output = self._commands.run("qstat", "-x", "-f", "-F", "json", *names, may_fail=True)
            try:
                entries, twice = json_entries(output, "Jobs")
            except ValueError:
                continue  # it knows none of them, or keeps no history
            found |= entries
            rejected += twice
        return Answer(found, rejected)

    def nodes(self) -> Answer:
        """Implement `Dialect.nodes` by ``pbsnodes``."""
        return self._query("nodes", "pbsnodes", "-a", "-F", "json")

    def _query(self, members: str, program: str, *words: str) -> Answer:
        try:
            return Answer(*json_entries(self._commands.run(program, *words), members))
        except ValueError as error:
            raise CommandError(f"output of {program} cannot be parsed: {error}") from error


class Torque:
    """Dialect of Torque since 2.4: ``-x``."""

    name = "torque"
    is_torque = True

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def jobs(self) -> Answer:
        """Implement `Dialect.jobs` by ``qstat``."""
        return self._query("Job", "Job_Id", "qstat", "-t", "-x")

    def ended(self, jobs: list[str]) -> Answer:
        """Implement `Dialect.ended`: empty, since Torque lists ended jobs among the others."""
        return Answer({}, [])

    def nodes(self) -> Answer:
        """Implement `Dialect.nodes` by ``pbsnodes``."""
        return self._query("Node", "name", "pbsnodes", "-x")

    def _query(self, element: str, name: str, program: str, *words: str) -> Answer:
        try:
            return Answer(xml_entries(self._commands.run(program, *words), element, name), [])
        except ValueError as error:
            raise CommandError(f"output of {program} cannot be parsed: {error}") from error
