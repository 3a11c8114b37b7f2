"""Scheduling pass: one policy decides every job that is due.

This module contains what all passes share: how a policy is called, how its choice is checked, and
    how
a decision is recorded, once when it begins, changes its reason or ends. `PerJobPass` decides job by
job, `RankingPass` ranks all pending jobs, `PlanPass` lets the policy plan everything together.
"""

from collections.abc import Callable, Hashable
from math import inf
from typing import Any, Final, NamedTuple

from outrider.api.capabilities import Groups
from outrider.engine.ports import Actuator
from outrider.engine.scheduling.guarded_policy import GuardedPolicy, check_key, check_scores
from outrider.engine.scheduling.pending_queue import PendingDecision, PendingQueue
from outrider.engine.scheduling.placement import (
    PROMISED,
    OpenPlaces,
    Possible,
    Refusal,
    find_refusal,
    kind_of,
)
from outrider.engine.state.machines import FREE
from outrider.engine.state.site import Site
from outrider.model.decisions import (
    DEFER,
    IMPOSSIBLE,
    NO_MACHINE,
    NOWHERE,
    START,
    Choice,
    Decision,
)
from outrider.model.jobs import Job
from outrider.model.machines import Resources

GUARD: Final = "guard"
MIN_DEFERRAL_S: Final = 1.0


Allows = Callable[[int], bool]
"""Check of whether a job may start on a machine although others wait before it."""

Record = Callable[[Decision], None]
"""Function that takes every decision, to record it, execute it, or both."""


class SchedulingPass:
    """Base of passes, which decide what is due for one runner.

    Args:
        runner: the owner of policy and queue.

    Attributes:
        awaited: starts that the batch system still has to make; empty unless the runner awaits
            them.
    """

    asks = "choose"
    """Name of the policy's method that decides, for error messages."""

    def __init__(self, runner: GuardedPolicy) -> None:
        self._runner = runner
        self._policy = runner.policy
        self._queue = runner.queue
        self._is_guarded = runner.policy.max_defer_s < inf
        self._groups = runner.policy if isinstance(runner.policy, Groups) else None
        self._evaluations: dict[Hashable, Any] = {}
        self._reserved_resources: list[tuple[int, Resources]] = []
        self._fit_nowhere: set[Hashable] = set()  # kinds of job, in this pass
        self.awaited = AwaitedStarts()

    def join(self, site: Site, actuator: Actuator | None, record: Record) -> None:
        """Bind to an engine, before the first decision.

        Args:
            site: the view.
            actuator: executes decisions; None in shadow.
            record: receives every decision.
        """
        self._site, self._actuator, self._record = site, actuator, record
        self._possible = Possible(site)

    def decide_due(self) -> None:
        """Decide everything that is due; no CPU is chosen twice."""
        try:
            if self.awaited.jobs:
                self.awaited.reserve(self._site, self._queue)
            self._decide()
        finally:
            self._site.end_reservations()
            if self._reserved_resources:
                self._give_back_resources()
            self._evaluations.clear()
            self._fit_nowhere.clear()

    def _give_back_resources(self) -> None:
        for machine, asked in self._reserved_resources:
            self._site.resources.give_back(machine, asked)
        self._reserved_resources.clear()

    def _decide(self) -> None:
        raise NotImplementedError

    def on_dequeue(self, pending: PendingDecision, site: Site) -> None:
        """Handle a job that left the queue."""

    def changed(self, job: Job, pending: PendingDecision, site: Site) -> None:
        """Handle a queued job that is declared again."""

    @property
    def any_waiting(self) -> bool:
        """True if any job here could use a machine that frees."""
        queue = self._queue
        return bool(queue.blocked or queue.ranked)

    def clear(self) -> None:
        """Forget all jobs of the queue."""

    def save(self) -> dict[str, Any]:
        """Return the state that it keeps in addition to the queue, as plain data."""
        return {}

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Resume from what `save` returned."""

    # -- decisions ----------------------------------------------------------------------------

    def _ask(self, job: Job, pending: PendingDecision, allows: Allows | None = None) -> Choice:
        """Return the policy's choice for one job, checked.

        The policy is called only if the job may start somewhere, and sees only where it may. A
        choice that is impossible nevertheless is refused. A job that is deferred although it may no
        longer be starts on a machine drawn from those.
        """
        site, policy, evaluation = self._site, self._policy, None
        view: Site | OpenPlaces = site
        if allows is not None or not job.is_plain:
            kind = kind_of(job.spec)
            if kind in self._fit_nowhere:
                return Choice(NOWHERE, NO_MACHINE)
            view = OpenPlaces(site, job, allows)
            if not view.free_since:
                if allows is None:
                    self._fit_nowhere.add(kind)
                return Choice(NOWHERE, NO_MACHINE)
        if self._groups is not None:
            evaluation = self._evaluate(job, view, self._groups)
        may_defer = not self._is_guarded or self._left_s(pending) >= MIN_DEFERRAL_S
        choice = policy.choose(job, evaluation, view, may_defer)
        if choice.machine == NOWHERE and choice.reason != NO_MACHINE:
            choice = self._checked_deferral(job, choice, view, may_defer)
        machine = choice.machine
        if machine != NOWHERE and (machine not in view.free_since or site.state[machine] != FREE):
            choice = self._refused(job, choice, view, may_defer)
        return choice

    def _checked_deferral(
        self, job: Job, choice: Choice, view: Site | OpenPlaces, may_defer: bool
    ) -> Choice:
        """Return the choice to defer a job, or a start if it may no longer be deferred."""
        if not may_defer:
            return Choice(view.draw(self._policy.rng), GUARD)
        back = self._runner.hand_back
        if back is not None and back.limit.left_s(job.number, view.now) < MIN_DEFERRAL_S:
            return back.choose(job, view)
        return choice

    def _left_s(self, pending: PendingDecision) -> float:
        """Return for how many more seconds the policy may defer a job."""
        left_s = self._policy.max_defer_s - pending.deferred_before_s
        if pending.deferred_since_s is not None:
            left_s -= self._site.now - pending.deferred_since_s
        return left_s

    def _evaluate(self, job: Job, view: Site | OpenPlaces, groups: Groups) -> Any:
        """Return the policy's evaluation for a group, computed once per pass.

        A job that does not fit everywhere gets its own: its machines differ within the group.
        """
        key, evaluations = self._policy.group_key(job, view), self._evaluations
        if view is not self._site:
            return groups.evaluate_group(key, view)
        try:
            if key in evaluations:
                return evaluations[key]
            evaluation = evaluations[key] = groups.evaluate_group(key, view)
        except TypeError:
            check_key(key)  # a set or a list cannot even be looked up
            raise
        return evaluation

    def _refused(
        self, job: Job, choice: Choice, view: Site | OpenPlaces, may_defer: bool
    ) -> Choice:
        """Return what replaces an impossible choice."""
        spec = job.spec
        refusal = find_refusal(self._site, spec, choice.machine, spec.cpus)
        if refusal is None:
            refusal = Refusal(PROMISED, "a start now", "what a job before it will need")
        reason = self._runner.refuse(job, choice.machine, refusal)
        if may_defer:
            return Choice(NOWHERE, reason, None, choice.scores)
        return Choice(view.draw(self._policy.rng), GUARD)

    def _defer(self, number: int, pending: PendingDecision, choice: Choice) -> None:
        """Defer a job; it is due again a decision epoch later."""
        now, reconsider_s = self._site.now, self._runner.reconsider_s
        left_s = self._left_s(pending)
        if (back := self._runner.hand_back) is not None:
            back.limit.keep(number, now)
            left_s = min(left_s, back.limit.left_s(number, now))
        if pending.deferred_since_s is None:
            pending.deferred_since_s = now
        if left_s < reconsider_s:
            self._queue.defer_shorter(number, pending, now + left_s)
        else:
            self._queue.defer(number, pending, now + reconsider_s)
        pending.decided_s = now
        self._note_deferral(number, pending, choice)

    # -- records ------------------------------------------------------------------------------

    def _note_no_machine(self, number: int, pending: PendingDecision) -> None:
        """Record that a job waits for a machine, or for one that the site does not have."""
        site = self._site
        pending.end_deferral(site.now)
        job = site.jobs[number]
        reason = NO_MACHINE if job.is_plain or self._possible(job.spec) else IMPOSSIBLE
        if pending.action != DEFER or pending.reason != reason:
            pending.decided_s = site.now
            self._note_deferral(number, pending, Choice(NOWHERE, reason))

    def _note_deferral(self, number: int, pending: PendingDecision, choice: Choice) -> None:
        reason = choice.reason
        if pending.action != DEFER or pending.reason != reason:
            pending.action, pending.reason, pending.cluster = DEFER, reason, NOWHERE
            self._record_decision(number, DEFER, 0, choice)

    def _note_start(self, job: Job, pending: PendingDecision, choice: Choice) -> None:
        """Record a start and execute it; in shadow only record it, once while it is pending."""
        site, actuator, machine = self._site, self._actuator, choice.machine
        cpus, cluster, now = job.spec.cpus, site.machine_cluster[machine], site.now
        if pending.deferred_since_s is not None:
            pending.end_deferral(now)
        site.reserve(machine, cpus)
        if not job.is_plain and job.spec.resources is not None:
            site.resources.take(machine, job.spec.resources)
            self._reserved_resources.append((machine, job.spec.resources))
        again = actuator is None and pending.action == START and pending.cluster == cluster
        pending.decided_s, pending.action, pending.cluster = now, START, cluster
        pending.reason = choice.reason
        if again:
            return
        self._runner.starts += 1
        self._record_decision(job.number, START, cpus, choice)
        if self._runner.awaits_starts:
            until_s = now + min(self._runner.reconsider_s, MAX_AWAIT_S)
            self.awaited.note(job.number, pending.stamp, machine, cpus, until_s)
        if actuator is not None:
            actuator.start(job.number, machine)

    def note_end(self, number: int, reason: str) -> None:
        """Record that a deferred job left without running."""
        self._record_decision(number, DEFER, 0, Choice(NOWHERE, f"ended_{reason}"))

    def _record_decision(self, number: int, action: str, cpus: int, choice: Choice) -> None:
        """Record a decision, before it is executed; all records are made here."""
        runner, scores = self._runner, choice.scores
        if scores is not None:
            check_scores(scores, self.asks)
        runner.decisions += 1
        self._record(
            Decision(
                self._site.now, number, action, choice.machine, cpus, choice.reason, runner.name,
                choice.propensity, scores,
            )
        )  # fmt: skip


# -- awaited starts --------------------------------------------------------------------------------
# Starts that were decided and executed, and that the batch system has not made yet.
#
# Until it has, their machines look free, and the next pass would give them to the next job, too: of
# two jobs that may then begin, the batch system starts either one.

MAX_AWAIT_S: Final = 300.0
"""Seconds after which a start that the batch system has not made is given up.

It may have a reason that is not known here, and the machine is free for other jobs, too."""


class _Awaited(NamedTuple):
    stamp: int
    machine: int
    cpus: int
    until_s: float


class AwaitedStarts:
    """Awaited starts of one policy.

    Attributes:
        jobs: their numbers.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, _Awaited] = {}

    def note(self, number: int, stamp: int, machine: int, cpus: int, until_s: float) -> None:
        """Add a start that was decided, and is awaited until `until_s`."""
        self.jobs[number] = _Awaited(stamp, machine, cpus, until_s)

    def reserve(self, site: Site, queue: PendingQueue) -> None:
        """Reserve, within a pass, what awaited starts will use; forget those that are over."""
        for number, awaited in list(self.jobs.items()):
            pending = queue.waiting.get(number)
            machine = awaited.machine
            if (
                pending is None
                or (pending.stamp, pending.action) != (awaited.stamp, START)
                or awaited.until_s <= site.now
                or site.state[machine] != FREE
                or site.busy[machine] + awaited.cpus > site.cpus[machine]
            ):
                del self.jobs[number]
            else:
                site.reserve(machine, awaited.cpus)

    def save(self) -> list[list[Any]]:
        """Return everything as plain data."""
        return [[number, *awaited] for number, awaited in self.jobs.items()]

    def restore(self, saved: list[list[Any]]) -> None:
        """Resume from what `save` returned."""
        self.jobs = {number: _Awaited(*awaited) for number, *awaited in saved}
