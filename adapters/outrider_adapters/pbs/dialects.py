"""How the two families of PBS are asked, and what is read of their answers."""

import json
import os
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple, Protocol
from xml.parsers import expat

from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import CommandError, Commands

# -- torque ----------------------------------------------------------------------------------------
# What Torque prints as XML: jobs (``qstat -x``) and nodes (``pbsnodes -x``).
#
# It has no document type and no entities; an answer that declares some is refused.

Attributes = dict[str, str]

_DEEPEST: Final = 4
_TORQUE_USERS: Final = frozenset({"Variable_List", "Job_Name", "submit_args"})
"""Written by users, at length; none is read."""


def xml_entries(text: str, element: str, name: str) -> dict[str, Attributes]:
    """The jobs or nodes of an answer, by name.

    Args:
        text: what the command printed; nothing where there are none.
        element: one of them: ``Job`` or ``Node``.
        name: the part that names it: ``Job_Id`` or ``name``.

    Raises:
        ValueError: it is no such answer.
    """
    if not text.strip():
        return {}
    reading = _Reading(element)
    parser = expat.ParserCreate()
    parser.StartElementHandler = reading.start
    parser.EndElementHandler = reading.end
    parser.CharacterDataHandler = reading.text
    parser.EntityDeclHandler = _refuse
    parser.StartDoctypeDeclHandler = _refuse
    try:
        parser.Parse(text, True)
    except expat.ExpatError as error:
        raise ValueError(f"no XML: {error}") from error
    return {one[name]: one for one in reading.found if name in one}


def _refuse(*_: object) -> None:
    raise ValueError("it declares a document type or an entity, which Torque never does")


class _Reading:
    """Collects the elements of one kind while they are parsed."""

    def __init__(self, element: str) -> None:
        self.found: list[Attributes] = []
        self._element = element
        self._path: list[str] = []
        self._words: list[str] = []

    def start(self, name: str, _: dict[str, str]) -> None:
        """An element begins."""
        if len(self._path) >= _DEEPEST:
            raise ValueError(f"<{name}> is nested deeper than Torque nests")
        self._path.append(name)
        self._words = []
        if len(self._path) == 2 and name == self._element:
            self.found.append({})

    def text(self, words: str) -> None:
        """Text inside of an element."""
        self._words.append(words)

    def end(self, name: str) -> None:
        """An element ends; the parts of those that are collected are attributes."""
        inner = self._path[2:]
        if self._path[1:2] == [self._element] and inner and not _TORQUE_USERS.intersection(inner):
            words = "".join(self._words).strip()
            if words:
                self.found[-1][".".join(inner)] = words
        self._path.pop()
        self._words = []


# -- openpbs ---------------------------------------------------------------------------------------
# What OpenPBS prints as JSON, which is not always JSON.
#
# ``qstat -F json`` of some versions writes the users' environments (``Variable_List``) and numbers
# with leading zeros as they are, and the whole is no JSON any more. It puts each member on a line
# of its own, though, so what is wrong is left out line by line, and the users' environments are
# never read at all.


_USERS: Final = frozenset({"Variable_List", "Submit_arguments", "Job_Name", "Error_Path"})
"""Written by users, at length; none is read."""

_MEMBER: Final = re.compile(r'(?P<indent>[ \t]*)"(?P<key>[^"\\]{1,255})":[ ]?(?P<value>.*)')
_CLOSES: Final = re.compile(r"(?P<indent>[ \t]*)\},?\s*")


def json_entries(text: str, members: str) -> tuple[dict[str, Attributes], list[str]]:
    """The jobs or nodes of an answer, by name.

    Args:
        text: what the command printed.
        members: under which key they are: ``Jobs`` or ``nodes``.

    Returns:
        their attributes, and the names of those that cannot be read: an attribute of theirs comes
        twice, with different values.

    Raises:
        ValueError: it is no such answer at all.
    """
    try:
        answer = json.loads(text)
    except ValueError:
        return _mended(text, members)
    found = answer.get(members) if isinstance(answer, dict) else None
    if found is None and isinstance(answer, dict) and "timestamp" in answer:
        return {}, []  # where there are none it leaves the key out
    if not isinstance(found, dict):
        raise ValueError(f"no {members!r} in what was printed")
    whole = {name: dict(_flat(ad)) for name, ad in found.items() if isinstance(ad, dict)}
    return whole, []


def _flat(ad: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    for key, value in ad.items():
        if key in _USERS:
            continue
        if isinstance(value, dict):
            if not prefix:
                yield from _flat(value, f"{key}.")
        elif isinstance(value, list):
            yield prefix + key, ",".join(map(str, value))
        else:
            yield prefix + key, str(value)


def _mended(text: str, members: str) -> tuple[dict[str, Attributes], list[str]]:
    """The same, line by line."""
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
        if member is None or (keys[2:3] and keys[2] in _USERS):
            continue
        key, value = member["key"], member["value"].strip()
        if value == "{":
            path.append((member["indent"], key))
            if keys == [members]:
                if key in found:
                    twice.add(key)
                found.setdefault(key, {})
        elif keys[:1] == [members] and 2 <= len(keys) <= 3 and key not in _USERS:
            name = ".".join([*keys[2:], key])
            said = _plain(value.removesuffix(","))
            if found[keys[1]].setdefault(name, said) != said:
                twice.add(keys[1])
    if not found and f'"{members}"' not in text:
        raise ValueError(f"no {members!r} in what was printed")
    return {name: ad for name, ad in found.items() if name not in twice}, sorted(twice)


def _plain(value: str) -> str:
    try:
        read = json.loads(value)
    except ValueError:
        return value.strip('"')
    return str(read)


# -- dialects --------------------------------------------------------------------------------------

_AT_ONCE: Final = 200
"""Jobs in one question: a command line has an end."""


class Answer(NamedTuple):
    """Jobs or nodes by name, and the names of those that cannot be read."""

    entries: dict[str, Attributes]
    rejected: list[str]


class Dialect(Protocol):
    """One family.

    Attributes:
        name: as in the settings.
        is_torque: whether codes and times are Torque's.
    """

    name: str
    is_torque: bool

    def jobs(self) -> Answer:
        """All jobs in the queue, the jobs of arrays each."""
        ...

    def ended(self, jobs: list[str]) -> Answer:
        """Those jobs of which the server still knows how they ended."""
        ...

    def nodes(self) -> Answer:
        """All nodes."""
        ...


def pbs_commands(settings: PBSSettings, **variables: str) -> Commands:
    """The commands of a server, with more variables in their environment."""
    environment = os.environ | variables
    if settings.server is not None:
        environment |= {"PBS_DEFAULT": settings.server, "PBS_SERVER": settings.server}
    return Commands(settings.commands, environment, settings.answer_within_s)


def dialect_of(settings: PBSSettings, commands: Commands) -> Dialect:
    """The dialect that is set, or that the commands say they speak.

    Raises:
        CommandError: qstat is not there.
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
        return Torque(commands)  # whose qstat prints its version on standard error
    return OpenPBS(commands) if "pbs_version" in version.lower() else Torque(commands)


class OpenPBS:
    """OpenPBS and PBS Professional since 14: ``-F json``."""

    name = "openpbs"
    is_torque = False

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def jobs(self) -> Answer:
        """As `Dialect.jobs`."""
        return self._asked("Jobs", "qstat", "-t", "-f", "-F", "json")

    def ended(self, jobs: list[str]) -> Answer:
        """As `Dialect.ended`; nothing where the server keeps no history of jobs."""
        found: dict[str, Attributes] = {}
        rejected: list[str] = []
        for first in range(0, len(jobs), _AT_ONCE):
            asked = jobs[first : first + _AT_ONCE]
            # one that it does not know any more makes it fail, and the others are printed
            said = self._commands.run("qstat", "-x", "-f", "-F", "json", *asked, may_fail=True)
            try:
                entries, twice = json_entries(said, "Jobs")
            except ValueError:
                continue  # it knows none of them, or keeps no history
            found |= entries
            rejected += twice
        return Answer(found, rejected)

    def nodes(self) -> Answer:
        """As `Dialect.nodes`."""
        return self._asked("nodes", "pbsnodes", "-a", "-F", "json")

    def _asked(self, members: str, program: str, *words: str) -> Answer:
        try:
            return Answer(*json_entries(self._commands.run(program, *words), members))
        except ValueError as error:
            raise CommandError(f"{program} prints what cannot be read: {error}") from error


class Torque:
    """Torque since 2.4: ``-x``."""

    name = "torque"
    is_torque = True

    def __init__(self, commands: Commands) -> None:
        self._commands = commands

    def jobs(self) -> Answer:
        """As `Dialect.jobs`."""
        return self._asked("Job", "Job_Id", "qstat", "-t", "-x")

    def ended(self, jobs: list[str]) -> Answer:
        """As `Dialect.ended`: none, for what Torque still knows is among the jobs."""
        return Answer({}, [])

    def nodes(self) -> Answer:
        """As `Dialect.nodes`."""
        return self._asked("Node", "name", "pbsnodes", "-x")

    def _asked(self, element: str, name: str, program: str, *words: str) -> Answer:
        try:
            return Answer(xml_entries(self._commands.run(program, *words), element, name), [])
        except ValueError as error:
            raise CommandError(f"{program} prints what cannot be read: {error}") from error
