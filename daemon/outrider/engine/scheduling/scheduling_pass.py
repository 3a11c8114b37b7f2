"""A scheduling pass: one policy decides every job that is due.

Here is what all passes share: how a policy is asked, how its choice is checked, and how a decision
is recorded, once when it begins, changes its reason or ends. `per_job_pass` decides job by job,
`ranking_pass` ranks all pending jobs, `plan_pass` lets the policy plan everything at once.
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
SHORTEST_DEFERRAL_S: Final = 1.0


Allows = Callable[[int], bool]
"""True if a job may start on a machine although others wait before it."""

Record = Callable[[Decision], None]
"""Takes every decision: it is written down, carried out, or both."""


class SchedulingPass:
    """Decides what is due for one runner, again and again.

    Args:
        runner: whose policy and whose queue.

    Attributes:
        awaited: starts that the batch system is to make; empty unless the runner waits for them.
    """

    asks = "choose"
    """The policy's method that decides, as errors name it."""

    def __init__(self, runner: GuardedPolicy) -> None:
        self._runner = runner
        self._policy = runner.policy
        self._queue = runner.queue
        self._is_guarded = runner.policy.max_defer_s < inf
        self._groups = runner.policy if isinstance(runner.policy, Groups) else None
        self._evaluations: dict[Hashable, Any] = {}
        self._reserved_resources: list[tuple[int, Resources]] = []
        self._fit_nowhere: set[Hashable] = set()  # kinds of job, in this pass: it frees nothing
        self.awaited = AwaitedStarts()

    def join(self, site: Site, actuator: Actuator | None, record: Record) -> None:
        """Bind to an engine, before the first decision.

        Args:
            site: the view.
            actuator: carries decisions out; None in shadow.
            record: takes every decision.
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
        """A job left the queue."""

    def changed(self, job: Job, pending: PendingDecision, site: Site) -> None:
        """A job in the queue is declared anew."""

    @property
    def somebody_waits(self) -> bool:
        """True if a machine that frees concerns anybody here."""
        queue = self._queue
        return bool(queue.blocked or queue.ranked)

    def clear(self) -> None:
        """Forget all jobs."""

    def save(self) -> dict[str, Any]:
        """What it keeps beside the queue, as plain data."""
        return {}

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Go on from what `save` gave."""

    # -- what is asked ------------------------------------------------------------------------

    def _ask(self, job: Job, pending: PendingDecision, allows: Allows | None = None) -> Choice:
        """What the policy says of one job.

        It is asked only if the job may start somewhere, and where it may is all that it sees. A
        choice that is impossible all the same is refused. A job that may not be deferred any more,
        and is, starts on a machine drawn from those.
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
        may_defer = not self._is_guarded or self._left_s(pending) >= SHORTEST_DEFERRAL_S
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
        """What follows from the choice to defer a job."""
        if not may_defer:
            return Choice(view.draw(self._policy.rng), GUARD)
        back = self._runner.hand_back
        if back is not None and back.limit.left_s(job.number, view.now) < SHORTEST_DEFERRAL_S:
            return back.choose(job, view)
        return choice

    def _left_s(self, pending: PendingDecision) -> float:
        """For how many seconds more the policy may defer a job."""
        left_s = self._policy.max_defer_s - pending.deferred_before_s
        if pending.deferred_since_s is not None:
            left_s -= self._site.now - pending.deferred_since_s
        return left_s

    def _evaluate(self, job: Job, view: Site | OpenPlaces, groups: Groups) -> Any:
        """What the policy evaluates once in a pass for all jobs of a group that fit everywhere.

        Of one that does not it is asked anew: what it may have differs within the group.
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
        """What follows from a choice that is impossible."""
        spec = job.spec
        refusal = find_refusal(self._site, spec, choice.machine, spec.cpus)
        if refusal is None:
            refusal = Refusal(PROMISED, "a start now", "what a job before it will need")
        reason = self._runner.refuse(job, choice.machine, refusal)
        if may_defer:
            return Choice(NOWHERE, reason, None, choice.scores)
        return Choice(view.draw(self._policy.rng), GUARD)

    def _defer(self, number: int, pending: PendingDecision, choice: Choice) -> None:
        """It is deferred, and due again a decision epoch later."""
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

    # -- what is written down -----------------------------------------------------------------

    def _note_no_machine(self, number: int, pending: PendingDecision) -> None:
        """It waits for a machine, or for one that the site does not have."""
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
        """It starts; in shadow it would, and is not recorded again while that is pending."""
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
            until_s = now + min(self._runner.reconsider_s, LONGEST_S)
            self.awaited.note(job.number, pending.stamp, machine, cpus, until_s)
        if actuator is not None:
            actuator.start(job.number, machine)

    def note_end(self, number: int, reason: str) -> None:
        """A deferred job left without running."""
        self._record_decision(number, DEFER, 0, Choice(NOWHERE, f"ended_{reason}"))

    def _record_decision(self, number: int, action: str, cpus: int, choice: Choice) -> None:
        """The one place where the record of a decision is made, before it is carried out."""
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
# Starts that were decided and carried out, and that the batch system has not made yet.
#
# Until it has, their machines look free, and the next pass would give them to the next job, too: of
# two jobs that may then begin, the batch system takes whichever it likes.

LONGEST_S: Final = 300.0
"""A batch system that has not made a start after so long may have a reason that is not known here,
and the machine is for others, too."""


class _Awaited(NamedTuple):
    stamp: int
    machine: int
    cpus: int
    until_s: float


class AwaitedStarts:
    """Starts of one policy that are awaited.

    Attributes:
        jobs: their numbers.
    """

    def __init__(self) -> None:
        self.jobs: dict[int, _Awaited] = {}

    def note(self, number: int, stamp: int, machine: int, cpus: int, until_s: float) -> None:
        """A start was decided, and is awaited until then."""
        self.jobs[number] = _Awaited(stamp, machine, cpus, until_s)

    def reserve(self, site: Site, queue: PendingQueue) -> None:
        """Within a pass: no other job chooses what they will take. What is over is forgotten."""
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
        """Everything as plain data."""
        return [[number, *awaited] for number, awaited in self.jobs.items()]

    def restore(self, saved: list[list[Any]]) -> None:
        """Go on from what `save` gave."""
        self.jobs = {number: _Awaited(*awaited) for number, *awaited in saved}
