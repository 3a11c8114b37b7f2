"""The fence of a Slurm: one Outrider acts on it, and the others see which one that is.

It is a job that never runs: it may begin a lease from now, and its deadline is a second later. It
is renewed with the leases; when nobody does that any more, Slurm takes it out of its queue by
itself.
"""

import time
from collections.abc import Callable, Collection, Sequence
from typing import Final

from outrider.api import PeerError
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.fence_jobs import NAME, FenceJob, fence_jobs
from outrider_adapters.slurm.acting.job_updates import Updater
from outrider_adapters.slurm.commands import SlurmCommands

_RENEW_BELOW: Final = 2.0 / 3.0
"""Of a lease: what is left when it is renewed."""
_TOO_LATE_BELOW: Final = 1.0 / 3.0
"""With less than this left another may have taken it before the renewal is there: it is let go."""

Finding = tuple[str, str, str, str]
"""As `outrider.api.Lever.prove` gives them."""


class Fence:
    """Says whether this Outrider is the one that acts.

    Of several fences that have not lapsed the lowest number counts.

    Args:
        commands: of the Slurm, as a user who may submit a job.
        updater: renews it.
        who: which Outrider this is: the same after a restart, and no other is.
        lease_s: how long a fence stands that is not renewed.
        partition: of the job; None: Slurm's default.
        clock: seconds that only ever go on.
    """

    def __init__(
        self,
        commands: SlurmCommands,
        updater: Updater,
        who: str,
        lease_s: float,
        partition: str | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._commands = commands
        self._updater = updater
        self._who = who
        self._lease_s = lease_s
        self._partition = partition
        self._clock = clock
        self._number: int | None = None
        self._stands_until_s = 0.0

    def hold(self, now_s: int, users: Collection[str]) -> None:
        """Make sure that this is the one that acts, for a third of a lease at least.

        Args:
            now_s: by Slurm's clock, Unix seconds.
            users: whose fences count.

        Raises:
            PeerError: another acts, or it cannot be submitted; then nothing may be changed.
        """
        asked_s = self._clock()
        mine = self._first_unless_anothers(now_s, users)
        if mine is not None and mine.begins_s - now_s < _TOO_LATE_BELOW * self._lease_s:
            self._cancel(mine.number)
            mine = None
        if mine is None or mine.begins_s - now_s < _RENEW_BELOW * self._lease_s:
            until_s = now_s + int(self._lease_s)
            if mine is None:
                self._submit(until_s)
            else:
                self._updater.renew_fence(mine.number, until_s)
            # two may have looked at the same moment
            mine = self._first_unless_anothers(now_s, users)
            if mine is None or mine.begins_s < until_s:
                raise PeerError(f"Slurm does not show {self._who} the fence that it asked for")
        self._number = mine.number
        self._stands_until_s = asked_s + mine.begins_s - now_s - 1.0

    @property
    def stands(self) -> bool:
        """Whether it stands still, since it was last held."""
        return self._clock() < self._stands_until_s

    def leave(self) -> None:
        """Let another act at once. Raises `CommandError`: it lapses by itself then."""
        if self._number is not None:
            self._cancel(self._number)

    def prove(self, now_s: int, users: Collection[str]) -> Finding:
        """Submit one, give it a later deadline, which an ordinary user may not, and cancel it."""
        until_s = now_s + int(self._lease_s)
        number = self._submit(until_s)
        try:
            self._updater.renew_fence(number, until_s + 1)
            shown = [job.begins_s for job in fence_jobs(self._commands, users)
                     if job.number == number]  # fmt: skip
        finally:
            self._commands.run("scancel", str(number))
        if shown != [until_s + 1]:
            found = f"job {number} does not show the time that it was given"
            return "a job of its own", "fail", found, "look for it in squeue -t all"
        found = f"job {number} was submitted, moved as an operator may, and cancelled"
        return "a job of its own", "ok", found, ""

    def _first_unless_anothers(self, now_s: int, users: Collection[str]) -> FenceJob | None:
        """This Outrider's first fence that has not lapsed. Raises `PeerError`: another's counts."""
        standing = [job for job in fence_jobs(self._commands, users) if job.begins_s > now_s]
        mine = next((job for job in standing if job.who == self._who), None)
        if standing and standing[0].who != self._who:
            if mine is not None:
                self._cancel(mine.number)
            other = standing[0]
            raise PeerError(
                f"{other.who} acts on this Slurm already (job {other.number} of {other.user}, "
                f"named {NAME}); right would be one Outrider that acts: mode = "
                '"shadow" for all others'
            )
        return mine

    def _submit(self, until_s: int) -> int:
        """The number of a new one."""
        try:
            said = self._commands.run("sbatch", *_submission(self._who, until_s, self._partition))
            return int(said.partition(";")[0])
        except CommandError as error:
            raise PeerError(
                f"{error}; so no fence keeps other Outriders from acting; right would be: its user "
                "may submit a job of one CPU and one minute (sacctmgr add user NAME account=...; "
                "fence_partition), or fence = false"
            ) from error

    def _cancel(self, number: int) -> None:
        self._number = None
        self._stands_until_s = 0.0
        self._commands.run("scancel", str(number))


def _submission(who: str, until_s: int, partition: str | None) -> Sequence[str]:
    return (
        "--parsable", f"--job-name={NAME}", f"--comment={who}", "--ntasks=1", "--time=1", "--mem=1",
        f"--begin=uts{until_s}", f"--deadline=uts{until_s + 1}", "--no-requeue", "--export=NIL",
        "--chdir=/", "--output=/dev/null", "--wrap=true",
        *([] if partition is None else [f"--partition={partition}"]),
    )  # fmt: skip
