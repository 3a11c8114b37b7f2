"""What Slurm's accounting knows of jobs that are in the queue no more."""

from collections.abc import Callable
from typing import Final

from outrider.api import NamedEvent, ReaderOptions, events
from outrider_adapters.readers.slurm import SacctReader
from outrider_adapters.slurm.commands import SlurmCommands

_COLUMNS: Final = (
    "Cluster,JobID,State,Submit,Eligible,Start,End,AllocCPUS,ReqCPUS,User,Account,Group,Timelimit,"
    "NodeList"
)
_AT_ONCE: Final = 500
"""Jobs in one question: a command line has an end."""


class Accounting:
    """Asks ``sacct`` for jobs that left unseen: while nobody looked, or too quickly.

    Args:
        commands: of the Slurm.
        storage: its ``AccountingStorageType``.
        cluster: whose jobs they are.

    Attributes:
        unknown_n: jobs whose end nobody knows, since the adapter was started.
    """

    def __init__(self, commands: SlurmCommands, storage: str, cluster: str) -> None:
        self._commands = commands
        self._has_accounting = storage.endswith("slurmdbd")
        self._cluster = cluster
        self.unknown_n = 0

    def ends_of(
        self, jobs: list[str], name_of: Callable[[str], str], now_s: float
    ) -> list[NamedEvent]:
        """How jobs ended; those of which nothing is known are taken as removed now.

        Args:
            jobs: their ids.
            name_of: makes names of them.
            now_s: when they were missed.

        Raises:
            CommandError: the accounting does not answer; they are to be asked for again.
        """
        told: list[NamedEvent] = []
        if self._has_accounting:
            for first in range(0, len(jobs), _AT_ONCE):
                told += self._asked(jobs[first : first + _AT_ONCE])
        ended = {e[2] for e in told if e[1] in (events.COMPLETED, events.REMOVED)}
        unknown = [name for job in jobs if (name := name_of(job)) not in ended]
        self.unknown_n += len(unknown)
        return told + [(now_s, events.REMOVED, name, "unknown") for name in unknown]

    @property
    def note(self) -> str:
        """What the person on call should know of them; empty: nothing."""
        if not self.unknown_n:
            return ""
        return f"how {self.unknown_n} jobs left is not known: they count as removed"

    def _asked(self, jobs: list[str]) -> list[NamedEvent]:
        words = ("-P", "-a", "-X", "-D", "-j", ",".join(jobs), "--format", _COLUMNS)
        dump = self._commands.run("sacct", *words)
        reader = SacctReader(ReaderOptions(system=self._cluster))
        return reader.read(dump.encode(), final=True).events
