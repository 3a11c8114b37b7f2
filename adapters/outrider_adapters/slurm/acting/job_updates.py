"""What jobs are given: handed to Slurm many at a time, and not more than so many in a second."""

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple, Protocol

from outrider.api import PeerError
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.arrays import folded
from outrider_adapters.slurm.commands import SlurmCommands

AT_ONCE: Final = 100
"""Words of one ``scontrol update``; each a job, or tasks of an array."""
ENDED: Final = "the daemon ends, and this was not asked for any more"
CANNOT_BE_REACHED: Final = "cannot be reached"
_NOBODY_ANSWERS: Final = (
    "did not answer within", "Unable to contact slurm controller", CANNOT_BE_REACHED,
)  # fmt: skip
"""In what a command says: then the next one is not tried."""


class GivenUpError(PeerError):
    """The rest was not asked for; the message says why. It may be asked for again."""


class Edit(NamedTuple):
    """What a job is given; None: that stays as it is.

    Attributes:
        start_s: its start time, Unix seconds.
        site_factor: its site factor.
        nice: its nice value.
    """

    start_s: int | None = None
    site_factor: int | None = None
    nice: int | None = None

    def words(self) -> list[str]:
        """As ``scontrol update`` takes it."""
        return [
            *([] if self.start_s is None else [f"StartTime=uts{self.start_s}"]),
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
        per_s: words of ``scontrol`` in a second, each a job or tasks of an array.
        forbids: why nothing may be changed any more; empty: it may. Asked before each command.
        clock: seconds that only ever go on.
        wait: waits for so many seconds unless it is told to end, and says whether it was.
    """

    def __init__(
        self,
        updater: Updater,
        per_s: float,
        forbids: Callable[[], str] = lambda: "",
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._updater = updater
        self._per_s = per_s
        self._forbids = forbids
        self._clock = clock
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._next_s = 0.0

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
        for edit, jobs in alike.items():
            for words in self._portions(folded(jobs)):
                ended = self._waited_and_ended(len(words))
                if not takes_back and (why := ENDED if ended else self._forbids()):
                    raise GivenUpError(why)
                try:
                    self._updater.update(words, edit)
                except CommandError as error:
                    said = str(error)
                    if any(words in said for words in _NOBODY_ANSWERS):
                        raise GivenUpError(said) from error
        return said

    def hurry(self) -> None:
        """Wait no more, and give up what would have to. From any thread."""
        self._ended.set()

    def _portions(self, words: Sequence[str]) -> Iterable[Sequence[str]]:
        n = max(1, min(AT_ONCE, int(self._per_s / 2)))  # short bursts, and pauses between them
        return (words[first : first + n] for first in range(0, len(words), n))

    def _waited_and_ended(self, n: int) -> bool:
        """Wait until so many more may be asked for; whether the daemon ends meanwhile."""
        now_s = self._clock()
        pause_s = self._next_s - now_s
        if pause_s > 0.0 and self._wait(pause_s):
            return True
        self._next_s = max(self._next_s, now_s) + n / self._per_s
        return False
