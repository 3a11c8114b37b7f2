"""Start times of jobs, moved a lease ahead and renewed: until then Slurm keeps them in its queue.

A start time lapses by itself. It also writes over the job's eligible time, and over a ``--begin``
of its user: both are in the undo log before that is done.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final

from outrider.api import PeerError, Undo, UndoLog
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.arrays import folded, jobs_of
from outrider_adapters.slurm.commands import SEPARATOR, SlurmCommands
from outrider_adapters.slurm.own_leases import (
    before_of,
    is_done,
    is_kept,
    is_own,
    lease_of,
    let_go_of,
)
from outrider_adapters.slurm.partitions import settings_of

AT_ONCE: Final = 250
"""Words of one ``scontrol update``; each a job, or tasks of an array."""
_CLOCK: Final = re.compile(r"^sdiag output at .*\((\d+)\)", re.MULTILINE)
_NOT_LOOKED_AT: Final = ("", "None", "Priority", "Resources")
_GONE: Final = "it waits in the queue no more"
_NOT_ELIGIBLE: Final = "Slurm keeps it back itself: it has no eligible time"
_CHANGED: Final = "somebody else changed its start time since Outrider did"


class StartTimes:
    """Moves start times of jobs, each read back.

    Args:
        commands: of the Slurm, with the right to update everybody's jobs.
        undo_log: where what stood before is noted.
        lease_s: how long a start time that is not renewed keeps a job in the queue.
        now: this host's clock, Unix seconds.

    All methods raise `PeerError` if Slurm does not answer, or its clock is off by more than a
    quarter of a lease.
    """

    def __init__(
        self,
        commands: SlurmCommands,
        undo_log: UndoLog,
        lease_s: float,
        now: Callable[[], float],
    ) -> None:
        self._commands = commands
        self._undo_log = undo_log
        self._lease_s = lease_s
        self._now = now
        self._cluster = ""

    def defer(self, names: Collection[str]) -> dict[str, str]:
        """Keep jobs in the queue for a lease from now; those for which that is not so, and why.

        A job whose user wants it to begin later than that is kept by that alone.
        """
        until_s = self._controller_s() + int(self._lease_s)
        eligible = self._eligible_s()
        refused: dict[str, str] = {}
        undo: dict[str, Undo] = {}
        for name in names:
            job = self._id_of(name)
            known = self._undo_log.entries.get(name)
            at_s = eligible.get(job)
            if at_s is None:
                refused[name] = _NOT_ELIGIBLE if job in eligible else _GONE
            elif is_own(known, at_s) or (at_s <= until_s and not is_kept(known, self._now())):
                undo[name] = lease_of(until_s, at_s, known, self._now())
            elif at_s < until_s:
                refused[name] = _CHANGED
        return refused | self._move(undo, until_s)

    def release(self, names: Iterable[str]) -> dict[str, str]:
        """Let jobs begin, or let their users' own begin times hold again; as `defer`."""
        controller_s = self._controller_s()
        eligible = self._eligible_s()
        free: dict[str, Undo] = {}
        refused: dict[str, str] = {}
        for name in names:
            known = self._undo_log.entries.get(name)
            at_s = eligible.get(self._id_of(name))
            if known is None or at_s is None or at_s <= controller_s or not is_own(known, at_s):
                continue
            begin_s = int(before_of(known).begin_s or 0)
            if begin_s > controller_s:
                refused |= self._move({name: lease_of(begin_s, at_s, known, self._now())}, begin_s)
            else:
                free[name] = let_go_of(known, controller_s)
        # a time that has passed: Slurm takes the present one, and schedules
        refused |= self._move(free, controller_s)
        return {name: why for name, why in refused.items() if why != _GONE}

    def release_all(self) -> int:
        """Let all jobs begin that this daemon, or one before it, keeps; how many these are.

        Raises:
            PeerError: for some of them it was refused, too.
        """
        now_s, noted = self._controller_s(), self._undo_log.entries
        mine = [name for name, undo in noted.items() if is_kept(undo, now_s)]
        if refused := self.release(mine):
            name, why = next(iter(refused.items()))
            raise PeerError(f"{len(refused)} of {len(mine)} jobs are kept still: {name}: {why}")
        return len(mine)

    def _move(self, undo: Mapping[str, Undo], to_s: int) -> dict[str, str]:
        """Note this and give the jobs that start time; those that have another then, and why."""
        if not undo:
            return {}
        before = self._undo_log.entries
        self._undo_log.write(undo)
        said = ""
        words = folded(self._id_of(name) for name in undo)
        for first in range(0, len(words), AT_ONCE):
            jobs = ",".join(words[first : first + AT_ONCE])
            try:
                self._commands.run("scontrol", "update", f"JobId={jobs}", f"StartTime=uts{to_s}")
            except CommandError as error:  # of one of them; reading back tells of which
                said = str(error)
        eligible = self._eligible_s()
        refused: dict[str, str] = {}
        for name in undo:
            job = self._id_of(name)
            if job not in eligible:
                refused[name] = _GONE
            elif not is_done(undo[name], eligible[job]):
                refused[name] = said or f"its start time is {eligible[job]} and not {to_s}"
        # a job that was told to begin may have done so since, with the time that is noted
        as_it_was = [
            name for name, why in refused.items()
            if why != _GONE or not before_of(undo[name]).let_go
        ]  # fmt: skip
        self._undo_log.write({name: before[name] for name in as_it_was if name in before})
        self._undo_log.forget(set(as_it_was) - before.keys())
        return refused

    def _controller_s(self) -> int:
        """The controller's clock, Unix seconds."""
        shown = _CLOCK.search(self._commands.run("sdiag"))
        if shown is None:
            raise PeerError('sdiag does not tell the time; right would be "sdiag output at ..."')
        off_s = int(shown[1]) - self._now()
        if abs(off_s) > self._lease_s / 4.0:
            raise PeerError(
                f"the controller's clock differs by {off_s:+.0f} s from this host's; right would "
                f"be less than a quarter of lease_s, {self._lease_s / 4.0:g} s"
            )
        return int(shown[1])

    def _eligible_s(self) -> dict[str, float | None]:
        """When each waiting job may begin, by its id: 0 at once, None where Slurm keeps it back."""
        fields = ("JobArrayID", "EligibleTime", "Reason")
        found: dict[str, float | None] = {}
        # tasks of an array that begin at different times would share a row without -r
        for line in filter(None, self._commands.rows(fields, "-a", "-r", "-t", "PD")):
            job, eligible, reason, _ = line.split(SEPARATOR)
            at_s = float(eligible) if eligible.isdecimal() else 0.0
            # an array has no eligible time until the scheduler has looked at it
            kept_back = not at_s and reason.partition(",")[0] not in _NOT_LOOKED_AT
            found |= dict.fromkeys(jobs_of(job), None if kept_back else at_s)
        return found

    def _id_of(self, name: str) -> str:
        """A job's id; that of another cluster's job is none here."""
        if not self._cluster:
            shown = settings_of(self._commands.run("scontrol", "show", "config"))
            self._cluster = shown.get("ClusterName", "")
        return name.removeprefix(f"{self._cluster}:")
