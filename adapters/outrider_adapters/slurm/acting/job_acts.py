"""Apply decisions to jobs of a Slurm: start times and priorities, changed together."""

from collections.abc import Iterable, Mapping, Sequence

from outrider.api import UndoLog
from outrider_adapters.noted_changes import (
    GONE,
    BeginTimes,
    Change,
    Plan,
    apply_changes,
    before_of,
)
from outrider_adapters.slurm.acting.controller import Controller, WaitingJob, waiting_jobs
from outrider_adapters.slurm.acting.job_updates import Edit, JobUpdates
from outrider_adapters.slurm.acting.priority_edits import (
    PriorityEdits,
    Wanted,
    check_can_be_changed,
    is_multifactor,
    lost_age,
    raise_above,
)
from outrider_adapters.slurm.settings import SlurmSettings


class JobActs:
    """Changes to waiting jobs, by the daemon itself or its helper.

    Args:
        controller: of the Slurm.
        updates: of its jobs.
        undo_log: of the adapter; site factors and nice values are in separate parts.
        settings: which attributes are changed at all.

    Attributes:
        controller: as above.
        start_times: of jobs.
    """

    def __init__(
        self,
        controller: Controller,
        updates: JobUpdates,
        undo_log: UndoLog,
        settings: SlurmSettings,
    ) -> None:
        self.controller = controller
        self.start_times = BeginTimes(undo_log, controller.lease_s)
        self._updates = updates
        self._undo_log = undo_log
        self._settings = settings

    def priorities(self, *, reverts: bool = False) -> list[PriorityEdits]:
        """Return the planners of site factors and nice values that have something to do.

        Args:
            reverts: changes are only reverted, so the settings need not be supported.

        Raises:
            PeerError: this Slurm does not support the settings, or does not answer.
        """
        settings, config = self._settings, self.controller.config()
        age = lost_age(config, settings.lease_s) if settings.keeps_age else None
        by = 0
        if age is not None and not reverts:
            check_can_be_changed(config, "keeps_age = true")
        if settings.order_by != "none" and not reverts:
            check_can_be_changed(config, f'order_by = "{settings.order_by}"')
            by = raise_above(config)
        site_by = by if settings.order_by == "site_factor" else 0
        nice_by = -by if settings.order_by == "nice" else 0
        part, lease_s = self._undo_log.part, settings.lease_s
        made = (
            PriorityEdits("site_factor", part("site_factor"), lease_s, site_by, age),
            PriorityEdits("nice", part("nice"), lease_s, nice_by),
        )
        return [one for one in made if not one.is_idle]

    def apply(self, kept: Sequence[str], free: Sequence[str], now_s: int) -> dict[str, str]:
        """Keep jobs in the queue, and let others begin; return the failures, with reasons.

        Args:
            kept: names of jobs that are deferred.
            free: names of jobs that are to start.
            now_s: by Slurm's clock, Unix seconds.

        Raises:
            PeerError: as `priorities`.
        """
        priorities = self.priorities()
        waiting = self.waiting([*kept, *free], priorities)
        deferred = self.start_times.deferred({n: waiting.get(n) for n in kept}, now_s)
        released = self.start_times.released({n: waiting.get(n) for n in free}, now_s)
        wanted = {name: Wanted(starts_s=s) for name, s in released.values.items()}
        for name, starts_s in deferred.values.items():
            before = before_of(deferred.notes[name])
            since_s = waiting[name].accrue_s or before.eligible_s or float(now_s)
            is_first = before.earlier_s is None
            wanted[name] = Wanted(starts_s=starts_s, since_s=since_s if is_first else None)
        refused = deferred.refused | self.apply_changes(
            [deferred, released], wanted, waiting, priorities, now_s
        )
        raising = [p for p in priorities if p.raises]
        if raising and (to_start := [name for name in free if name not in refused]):
            refused |= self._raise(to_start, raising)
        return {name: why for name, why in refused.items() if why != GONE or name in kept}

    def waiting(
        self, names: Iterable[str], priorities: Sequence[PriorityEdits]
    ) -> dict[str, WaitingJob]:
        """Return those of these jobs that wait, by name, with the data needed for priorities."""
        shown, id_of = self._waiting(priorities), self.controller.id_of
        return {name: shown[job] for name in names if (job := id_of(name)) in shown}

    def apply_changes(
        self,
        moves: Sequence[Plan],
        wanted: Mapping[str, Wanted],
        waiting: Mapping[str, WaitingJob],
        priorities: Sequence[PriorityEdits],
        now_s: float,
        *,
        reverts: bool = False,
    ) -> dict[str, str]:
        """Change start times and priorities together; return the failures, with reasons.

        Args:
            moves: plans of `start_times`.
            wanted: requested priorities, by job.
            waiting: all these jobs.
            priorities: result of `priorities`.
            now_s: by Slurm's clock, Unix seconds.
            reverts: as in `JobUpdates.make`.
        """
        plans = [p.wanted(wanted, waiting, now_s) for p in priorities]
        left_alone = {name: why for plan in plans for name, why in plan.refused.items()}
        changes: list[Change[WaitingJob]]
        changes = [self.start_times.change(plan.without(left_alone)) for plan in moves]
        changes += [
            p.change(plan.without(left_alone)) for p, plan in zip(priorities, plans, strict=True)
        ]
        names = {name for change in changes for name in change.plan.notes}
        refused = apply_changes(
            changes,
            lambda values: self._updates.make(self._edits(values), reverts=reverts),
            lambda: self.waiting(names, priorities),
        )
        for p, plan in zip(priorities, plans, strict=True):
            p.settle(plan.notes.keys() - refused.keys() - left_alone.keys())
        return left_alone | refused

    def _raise(self, names: Sequence[str], raising: Sequence[PriorityEdits]) -> dict[str, str]:
        """Raise jobs that may begin above the others."""
        now_s, waiting = self.controller.now_s(), self.waiting(names, raising)
        wanted = {
            name: Wanted(raised=True)
            for name, job in waiting.items()
            if job.eligible_s is not None and job.eligible_s <= now_s
        }
        return self.apply_changes([], wanted, waiting, raising, now_s)

    def _edits(self, values: Mapping[str, Mapping[str, int]]) -> dict[str, Edit]:
        return {self.controller.id_of(name): Edit(**given) for name, given in values.items()}

    def _waiting(self, priorities: Sequence[PriorityEdits]) -> dict[str, WaitingJob]:
        has_factors = is_multifactor(self.controller.config())
        with_factors = has_factors and any(p.attribute == "site_factor" for p in priorities)
        return waiting_jobs(self.controller.commands, with_factors)
