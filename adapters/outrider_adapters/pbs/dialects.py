"""How the two families of PBS are asked, and what is read of their answers."""

import os
from typing import Final, NamedTuple, Protocol

from outrider_adapters.pbs import openpbs, torque
from outrider_adapters.pbs.settings import PBSSettings
from outrider_adapters.polling import CommandError, Commands

Attributes = dict[str, str]

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
                entries, twice = openpbs.entries(said, "Jobs")
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
            return Answer(*openpbs.entries(self._commands.run(program, *words), members))
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
            return Answer(torque.entries(self._commands.run(program, *words), element, name), [])
        except ValueError as error:
            raise CommandError(f"{program} prints what cannot be read: {error}") from error
