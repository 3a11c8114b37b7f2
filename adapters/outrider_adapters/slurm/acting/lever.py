"""Lever of a Slurm: keeps jobs in the queue by start times that expire automatically.

If the settings request it, jobs that are to start are raised above the others, and jobs get back
the age that their deferral cost. That does not expire automatically.
"""

import contextlib
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from outrider.api import DecisionRow, Lever, PeerError
from outrider_adapters.noted_changes import GONE, Pace, Plan
from outrider_adapters.polling import CommandError
from outrider_adapters.slurm.acting.controller import Controller, active_jobs
from outrider_adapters.slurm.acting.fence_jobs import NAME, FenceJob, fence_jobs
from outrider_adapters.slurm.acting.helper.requests import HelperClient
from outrider_adapters.slurm.acting.job_acts import JobActs
from outrider_adapters.slurm.acting.job_updates import Edit, JobUpdates, Scontrol, Updater
from outrider_adapters.slurm.acting.priority_edits import PriorityEdits, Wanted, given_of
from outrider_adapters.slurm.commands import SlurmCommands

# -- taking back -----------------------------------------------------------------------------------
# Revert what Outrider changed of jobs of a Slurm: for some, for all, or what is overdue.


class Reverter:
    """Reverter of Outrider's changes to jobs.

    Args:
        acts: by which the jobs were changed.
        updates: of the jobs.
    """

    def __init__(self, acts: JobActs, updates: JobUpdates) -> None:
        self._acts = acts
        self._updates = updates

    def withdraw(self, names: Collection[str]) -> dict[str, str]:
        """Revert the changes of jobs, except for age that they lost and that was restored.

        Returns:
            the jobs for which that was refused, and why.
        """
        now_s = self._acts.controller.now_s()
        return self._revert(names, self._acts.priorities(reverts=True), now_s)[1]

    def withdraw_all(self) -> int:
        """Revert the changes of all jobs; return for how many.

        Raises:
            PeerError: that was refused for some of them.
        """
        now_s, priorities = self._acts.controller.now_s(), self._acts.priorities(reverts=True)
        noted = (name for p in priorities for name in p.undo_log.entries)
        names = {*self._acts.start_times.kept(now_s), *noted}
        done, refused = self._revert(names, priorities, now_s, keeps_age=False)
        _raise_refusals(refused, len(names))
        return done

    def withdraw_stale(self) -> int:
        """Revert overdue lasting changes; return for how many jobs. Raises as `withdraw_all`."""
        if not any(p.undo_log.entries for p in self._acts.priorities(reverts=True)):
            return 0
        done, refused = self.overdue(self._acts.controller.now_s())
        _raise_refusals(refused, done + len(refused))
        return done

    def overdue(self, now_s: int) -> tuple[int, dict[str, str]]:
        """Revert overdue changes at a time by Slurm's clock; return the number and the refusals."""
        priorities = self._acts.priorities(reverts=True)
        names = {name for p in priorities for name in p.overdue(now_s)}
        return self._revert(names, priorities, now_s, releases=False)

    def _revert(
        self,
        names: Collection[str],
        priorities: Sequence[PriorityEdits],
        now_s: int,
        *,
        keeps_age: bool = True,
        releases: bool = True,
    ) -> tuple[int, dict[str, str]]:
        """Return for how many jobs something was reverted; and the refusals, with reasons."""
        if not names:
            return 0, {}
        waiting = self._acts.waiting(names, priorities)
        plan = self._acts.start_times.released(waiting, now_s) if releases else Plan.empty()
        wanted = {
            name: Wanted(starts_s=plan.values.get(name), keeps_age=keeps_age)
            for name in waiting
            if any(name in p.undo_log.entries for p in priorities)
        }
        changed = {*plan.values, *(n for n in names if any(p.is_changed(n) for p in priorities))}
        refused = self._acts.apply_changes([plan], wanted, waiting, priorities, now_s, reverts=True)
        for p in priorities:  # their values belong to another user or program from now on
            p.undo_log.forget([n for n, job in waiting.items() if p.is_anothers(n, job)])
        refused |= self._restore_running(set(names) - waiting.keys(), priorities)
        refused = {name: why for name, why in refused.items() if why != GONE}
        changed = {n for n in changed if not any(p.is_changed(n) for p in priorities)}
        return len(changed - refused.keys()), refused

    def _restore_running(
        self, names: Collection[str], priorities: Sequence[PriorityEdits]
    ) -> dict[str, str]:
        """Restore the values of running jobs, which may be requeued; return the refusals."""
        if not any(name in p.undo_log.entries for p in priorities for name in names):
            return {}
        commands, id_of = self._acts.controller.commands, self._acts.controller.id_of
        active = active_jobs(commands)
        edits: dict[str, Edit] = {}
        for p in priorities:
            for name in names:
                if p.is_changed(name) and (job := id_of(name)) in active:
                    was = given_of(p.undo_log.entries[name]).was
                    edits[job] = edits.get(job, Edit())._replace(**{p.attribute: was})
        error = self._updates.make(edits, reverts=True)
        there = active_jobs(commands) & edits.keys() if error else set()
        refused = {name: error for name in names if id_of(name) in there}
        for p in priorities:
            p.undo_log.forget(set(names) - refused.keys())
        return refused


def _raise_refusals(refused: Mapping[str, str], n: int) -> None:
    if refused:
        name, why = next(iter(refused.items()))
        raise PeerError(f"{len(refused)} of {n} jobs were not restored: {name}: {why}")


# -- fence -----------------------------------------------------------------------------------------
# Fence of a Slurm: one Outrider acts on it, and the others see which one that is.
#
# It is a job that never runs. It may begin a lease from now, and its deadline is a second later. It
# is renewed with the leases; if it is not, Slurm automatically removes it from its queue.

_RENEW_BELOW: Final = 2.0 / 3.0
"""Part of a lease: a fence with less time left is renewed."""
_RELEASE_BELOW: Final = 1.0 / 3.0
"""Part of a lease: with less left, another may take the fence before a renewal; it is released."""
_LIMIT: Final = "--time=1"
"""Time limit of a fence. Newer releases (24.11) refuse one that ends after the deadline, but take a
job without one, which then has its partition's."""
_TOO_LONG: Final = "time limit is invalid"

Finding = tuple[str, str, str, str]
"""Finding as returned by `outrider.api.Lever.prove`."""


class Fence:
    """Fence that allows one Outrider at a time to act.

    Of several fences that have not expired the lowest number counts.

    Args:
        commands: of the Slurm, as a user who may submit a job.
        updater: renews the fence.
        who: identity of this Outrider: unique, and the same after a restart.
        lease_s: how long a fence lasts unless it is renewed.
        partition: of the fence job; None: Slurm's default.
        clock: returns seconds of a monotonic clock.
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
        self._held_until_s = 0.0

    def hold(self, now_s: int, users: Collection[str]) -> None:
        """Make sure that this Outrider is the one that acts, for at least a third of a lease.

        Args:
            now_s: by Slurm's clock, Unix seconds.
            users: whose fences count.

        Raises:
            PeerError: another acts, or a fence cannot be submitted; then nothing may be changed.
        """
        asked_s = self._clock()
        mine = self._first_unless_anothers(now_s, users)
        if mine is not None and mine.begins_s - now_s < _RELEASE_BELOW * self._lease_s:
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
                raise PeerError(f"Slurm does not show {self._who} the fence that it requested")
        self._number = mine.number
        self._held_until_s = asked_s + mine.begins_s - now_s - 1.0

    @property
    def is_held(self) -> bool:
        """True if the fence that was last held has not expired."""
        return self._clock() < self._held_until_s

    def leave(self) -> None:
        """Release the fence for other Outriders. Raises `CommandError`: then it expires."""
        if self._number is not None:
            self._cancel(self._number)

    def prove(self, now_s: int, users: Collection[str]) -> Finding:
        """Submit a fence, give it a later deadline (an operator's right), and cancel it."""
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
        """Return this Outrider's first active fence. Raises `PeerError`: another's counts."""
        active = [job for job in fence_jobs(self._commands, users) if job.begins_s > now_s]
        mine = next((job for job in active if job.who == self._who), None)
        if active and active[0].who != self._who:
            if mine is not None:
                self._cancel(mine.number)
            other = active[0]
            raise PeerError(
                f"{other.who} acts on this Slurm already (job {other.number} of {other.user}, "
                f"named {NAME}); expected one Outrider that acts: mode = "
                '"shadow" for all others'
            )
        return mine

    def _submit(self, until_s: int) -> int:
        """Submit a fence job and return its number."""
        words = _submission(self._who, until_s, self._partition)
        try:
            try:
                output = self._commands.run("sbatch", _LIMIT, *words)
            except CommandError as error:
                if _TOO_LONG not in str(error):
                    raise
                output = self._commands.run("sbatch", *words)
            return int(output.partition(";")[0])
        except CommandError as error:
            raise PeerError(
                f"{error}; so no fence keeps other Outriders from acting; use: its user "
                "may submit a job of one CPU and one minute (sacctmgr add user NAME account=...; "
                "fence_partition), or fence = false"
            ) from error

    def _cancel(self, number: int) -> None:
        self._number = None
        self._held_until_s = 0.0
        self._commands.run("scancel", str(number))


def _submission(who: str, until_s: int, partition: str | None) -> Sequence[str]:
    return (
        "--parsable", f"--job-name={NAME}", f"--comment={who}", "--ntasks=1", "--mem=1",
        f"--begin=uts{until_s}", f"--deadline=uts{until_s + 1}", "--no-requeue", "--export=NIL",
        "--chdir=/", "--output=/dev/null", "--wrap=true",
        *([] if partition is None else [f"--partition={partition}"]),
    )  # fmt: skip


# -- lever -----------------------------------------------------------------------------------------


class LeasedStartTimes(Lever):
    """Lever that moves the start time of deferred jobs a lease ahead, again and again.

    A job that is to start may begin immediately. Slurm decides where it runs, and which of the
    jobs that may begin comes first, unless `order_by` says otherwise.

    Args:
        adapter: of the Slurm.
        now: this host's clock, Unix seconds.
    """

    name = "leased_start_times"
    description = "keeps jobs in the queue by a start time a lease ahead, which then takes effect"
    actions = ("start", "defer")
    places = False

    def __init__(self, adapter: Any, now: Callable[[], float] = time.time) -> None:
        super().__init__(adapter)
        settings = adapter.settings
        self.lease_s = settings.lease_s
        self.lasts = settings.changes_last
        self._now = now
        self._commands = SlurmCommands(settings)
        self._updater: Updater = (
            Scontrol(self._commands)
            if settings.helper is None
            else HelperClient(settings.helper, settings.answer_within_s)
        )
        self._pace = Pace(settings.updates_per_s)
        self._updates = JobUpdates(self._updater, self._pace, self._forbids)

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """Implement `Lever.apply` by start times."""
        controller = self._acts.controller
        now_s = controller.now_s()
        if self._fence is not None:
            self._fence.hold(now_s, controller.acting_users())
        _, refused = self._reverter.overdue(now_s)
        kept = [one.job for one in decisions if one.action == "defer"]
        free = [one.job for one in decisions if one.action == "start"]
        return refused | self._acts.apply(kept, free, now_s)

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """Implement `Lever.withdraw`; restored age stays restored for as long as jobs wait."""
        return self._reverter.withdraw(jobs)

    def withdraw_all(self) -> int:
        """Implement `Lever.withdraw_all` for the jobs in the undo log."""
        return self._reverter.withdraw_all()

    def withdraw_stale(self) -> int:
        """Implement `Lever.withdraw_stale` for lasting changes."""
        return self._reverter.withdraw_stale()

    def prove(self) -> list[Finding]:
        """Implement `Lever.prove` by a fence that is cancelled immediately."""
        if self._fence is None:
            return []
        controller = self._acts.controller
        return [self._fence.prove(controller.now_s(), controller.acting_users())]

    def hurry(self) -> None:
        """Implement `Lever.hurry`: stop spreading updates."""
        self._pace.hurry()

    def close(self) -> None:
        """Release the fence for other Outriders, and end a running command."""
        fence = self.__dict__.get("_fence")  # only where one was created
        if fence is not None:
            with contextlib.suppress(CommandError):  # it expires automatically
                fence.leave()
        self._commands.close()

    def _forbids(self) -> str:
        if self._fence is None or self._fence.is_held:
            return ""
        return "the fence expired before this update's turn; the update is tried again later"

    # created on first use, since the adapter gets its undo log after its levers

    @cached_property
    def _fence(self) -> Fence | None:
        settings = self.adapter.settings
        if not settings.fence:
            return None
        return Fence(
            self._commands,
            self._updater,
            self.adapter.identity,
            self.lease_s,
            settings.fence_partition,
        )

    @cached_property
    def _acts(self) -> JobActs:
        controller = Controller(self._commands, self.lease_s, self._now)
        return JobActs(controller, self._updates, self.adapter.undo_log, self.adapter.settings)

    @cached_property
    def _reverter(self) -> Reverter:
        return Reverter(self._acts, self._updates)
