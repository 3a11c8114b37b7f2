"""Batched and rate-limited updates of Slurm jobs."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from outrider_adapters.noted_changes import GivenUpError, Pace
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.queue_rows import folded

MAX_WORDS: Final = 100
"""Maximum number of words of one ``scontrol update``; each is a job, or tasks of an array."""
ENDED: Final = "the daemon ends, and drops this update"
CANNOT_BE_REACHED: Final = "cannot be reached"
_UNREACHABLE: Final = (
    "did not answer within", "Unable to contact slurm controller", CANNOT_BE_REACHED,
    # "scontrol update" of Slurm 22.05 prints the first if a controller is down, silent or dies
    "Unexpected message received", "Zero Bytes were transmitted or received",
    "Socket timed out on send/recv operation",
)  # fmt: skip
"""Signs in an error that Slurm cannot be reached: then no further command is tried."""


class Edit(NamedTuple):
    """New values of a job; None: unchanged.

    Attributes:
        begin_s: its start time, Unix seconds.
        site_factor: its site factor.
        nice: its nice value.
    """

    begin_s: int | None = None
    site_factor: int | None = None
    nice: int | None = None

    def words(self) -> list[str]:
        """Return the edit as arguments of ``scontrol update``."""
        return [
            *([] if self.begin_s is None else [f"StartTime=uts{self.begin_s}"]),
            *([] if self.site_factor is None else [f"SiteFactor={self.site_factor}"]),
            *([] if self.nice is None else [f"Nice={self.nice}"]),
        ]


class Updater(Protocol):
    """Client that has the right to update all users' jobs."""

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        """Apply an edit to jobs, given as words of ``scontrol``.

        Raises:
            CommandError: Slurm refused it for at least one of them; the message is Slurm's.
        """
        ...

    def renew_fence(self, number: int, until_s: int) -> None:
        """Let a fence job expire at this time. Raises `CommandError`: refused."""
        ...


class Scontrol:
    """Updater that uses the rights of this process's own user.

    Args:
        commands: of the Slurm.
    """

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        """Implement `Updater.update` by ``scontrol``."""
        self._commands.run("scontrol", "update", f"JobId={','.join(jobs)}", *edit.words())

    def renew_fence(self, number: int, until_s: int) -> None:
        """Implement `Updater.renew_fence` by ``scontrol``."""
        times = (f"StartTime=uts{until_s}", f"Deadline=uts{until_s + 1}")
        self._commands.run("scontrol", "update", f"JobId={number}", *times)


class JobUpdates:
    """Rate-limited updates of jobs.

    Args:
        updater: executes them.
        pace: limits words of ``scontrol``, each a job or tasks of an array.
        forbids: returns why nothing may be changed any more, else "". Called before each command.
    """

    def __init__(
        self, updater: Updater, pace: Pace, forbids: Callable[[], str] = lambda: ""
    ) -> None:
        self._updater = updater
        self._pace = pace
        self._forbids = forbids

    def make(self, edits: Mapping[str, Edit], *, reverts: bool = False) -> str:
        """Apply an edit to each job, by its id.

        Args:
            edits: by job.
            reverts: the edit restores earlier values. A daemon that ends does that immediately,
                    and drops updates that would have to wait for their turn.

        Returns:
            Slurm's last error; empty: it refused nothing. Reading the jobs again shows which were
            refused.

        Raises:
            GivenUpError: Slurm does not answer, changes are forbidden now, or the daemon ends.
        """
        error_text = ""
        by_edit: dict[Edit, list[str]] = {}
        for job, edit in edits.items():
            by_edit.setdefault(edit, []).append(job)
        n = min(MAX_WORDS, self._pace.burst_n)
        for edit, jobs in by_edit.items():
            words = folded(jobs)
            for first in range(0, len(words), n):
                some = words[first : first + n]
                ended = self._pace.wait_or_end(len(some))
                if not reverts and (why := ENDED if ended else self._forbids()):
                    raise GivenUpError(why)
                try:
                    self._updater.update(some, edit)
                except CommandError as error:
                    error_text = str(error)
                    if any(sign in error_text for sign in _UNREACHABLE):
                        raise GivenUpError(error_text) from error
        return error_text
