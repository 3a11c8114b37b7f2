"""What jobs are given: handed to Slurm many at a time, and not more than so many in a second."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from outrider_adapters.noted_changes import GivenUpError, Pace
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.commands import SlurmCommands
from outrider_adapters.slurm.queue_rows import folded

AT_ONCE: Final = 100
"""Words of one ``scontrol update``; each a job, or tasks of an array."""
ENDED: Final = "the daemon ends, and this was not asked for any more"
CANNOT_BE_REACHED: Final = "cannot be reached"
_NOBODY_ANSWERS: Final = (
    "did not answer within", "Unable to contact slurm controller", CANNOT_BE_REACHED,
    # of a controller that is down, silent or dies, "scontrol update" of Slurm 22.05 says the first
    "Unexpected message received", "Zero Bytes were transmitted or received",
    "Socket timed out on send/recv operation",
)  # fmt: skip
"""In what a command says: then the next one is not tried."""


class Edit(NamedTuple):
    """What a job is given; None: that stays as it is.

    Attributes:
        begin_s: its start time, Unix seconds.
        site_factor: its site factor.
        nice: its nice value.
    """

    begin_s: int | None = None
    site_factor: int | None = None
    nice: int | None = None

    def words(self) -> list[str]:
        """As ``scontrol update`` takes it."""
        return [
            *([] if self.begin_s is None else [f"StartTime=uts{self.begin_s}"]),
            *([] if self.site_factor is None else [f"SiteFactor={self.site_factor}"]),
            *([] if self.nice is None else [f"Nice={self.nice}"]),
        ]


class Updater(Protocol):
    """Who has the right to update everybody's jobs."""

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        """Give jobs, by words of ``scontrol``, what is in an edit.

        Raises:
            CommandError: that was refused for one of them or more, in Slurm's words.
        """
        ...

    def renew_fence(self, number: int, until_s: int) -> None:
        """Let a job that is a fence lapse at this time. Raises `CommandError`: refused."""
        ...


class Scontrol:
    """Updates jobs with the right of this process's own user.

    Args:
        commands: of the Slurm.
    """

    def __init__(self, commands: SlurmCommands) -> None:
        self._commands = commands

    def update(self, jobs: Sequence[str], edit: Edit) -> None:
        """As `Updater.update`."""
        self._commands.run("scontrol", "update", f"JobId={','.join(jobs)}", *edit.words())

    def renew_fence(self, number: int, until_s: int) -> None:
        """As `Updater.renew_fence`."""
        times = (f"StartTime=uts{until_s}", f"Deadline=uts{until_s + 1}")
        self._commands.run("scontrol", "update", f"JobId={number}", *times)


class JobUpdates:
    """Updates jobs, so many in a second at most.

    Args:
        updater: does it.
        pace: of words of ``scontrol``, each a job or tasks of an array.
        forbids: why nothing may be changed any more; empty: it may. Asked before each command.
    """

    def __init__(
        self, updater: Updater, pace: Pace, forbids: Callable[[], str] = lambda: ""
    ) -> None:
        self._updater = updater
        self._pace = pace
        self._forbids = forbids

    def make(self, edits: Mapping[str, Edit], *, takes_back: bool = False) -> str:
        """Give each job, by its id, what it is to get.

        Args:
            edits: by job.
            takes_back: it is what was there before: a daemon that ends does that at once, while it
                gives up what else would have to wait for its turn.

        Returns:
            what Slurm said when it refused the last time; empty: it refused nothing. Reading back
            tells of which job.

        Raises:
            GivenUpError: nobody answers, it is forbidden now, or the daemon ends.
        """
        said = ""
        alike: dict[Edit, list[str]] = {}
        for job, edit in edits.items():
            alike.setdefault(edit, []).append(job)
        n = min(AT_ONCE, self._pace.at_once)
        for edit, jobs in alike.items():
            words = folded(jobs)
            for first in range(0, len(words), n):
                some = words[first : first + n]
                ended = self._pace.waited_and_ended(len(some))
                if not takes_back and (why := ENDED if ended else self._forbids()):
                    raise GivenUpError(why)
                try:
                    self._updater.update(some, edit)
                except CommandError as error:
                    said = str(error)
                    if any(sign in said for sign in _NOBODY_ANSWERS):
                        raise GivenUpError(said) from error
        return said
