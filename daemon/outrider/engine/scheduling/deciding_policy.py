"""Policy that decides: its pending jobs, and scheduling passes over those that are due."""

import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final

from outrider.api.capabilities import Decides, Groups, Orders, Plans, Ranks
from outrider.api.policy import Policy
from outrider.engine.accounting.deferrals import Deferrals
from outrider.engine.ports import Actuator
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision
from outrider.engine.scheduling.placement import OpenPlaces
from outrider.engine.scheduling.queue_passes import PlanPass, QueuePass, RankingPass
from outrider.engine.scheduling.scheduling_pass import Record, SchedulingPass
from outrider.engine.state.site import Site
from outrider.model.decisions import NO_MACHINE, NOWHERE, START, UNCHOSEN
from outrider.model.jobs import Job
from outrider.model.modes import FIRST_FIT, Discipline


class DecidingPolicy(GuardedPolicy):
    """Guarded policy that decides its due jobs, in the kind of pass that it declares.

    Args:
        policy, acting, reconsider_s, strict: see `GuardedPolicy`.
        exact: remember each job that was deferred, for a report that uses true run times (replay).
        discipline: which jobs may start before one that does not fit: `outrider.model.modes`.
        is_narrow: every job requests one CPU of any machine: the first always fits, and all
            disciplines are equal.

    Attributes:
        discipline: as given; None where the policy plans and no job waits for another.
        deferrals: statistics of deferred jobs.
        plans: True if the policy plans whole passes.
        looks_at_runs: True if it sees the whole queue, and the running jobs.
    """

    def __init__(
        self,
        policy: Policy,
        acting: bool,
        reconsider_s: float,
        strict: bool,
        exact: bool,
        discipline: Discipline,
        is_narrow: bool,
    ) -> None:
        super().__init__(policy, acting, reconsider_s, strict)
        self.deferrals = Deferrals(self.reconsider_s, exact)
        self.longest_ended_deferral_s = 0.0
        self.discipline = None if policy.decides is Decides.PLAN else discipline
        self.scheduling_pass = self._pass_for(FIRST_FIT if is_narrow else discipline)
        self.plans = isinstance(self.scheduling_pass, PlanPass)
        self.looks_at_runs = isinstance(self.scheduling_pass, QueuePass)

    def _pass_for(self, discipline: Discipline) -> SchedulingPass:
        """Return the kind of pass that the policy declares."""
        policy = self.policy
        if isinstance(policy, Plans):
            return PlanPass(self, policy)
        if discipline != FIRST_FIT or isinstance(policy, Ranks):
            return RankingPass(self, discipline)
        return OrderedPass(self, policy) if isinstance(policy, Orders) else PerJobPass(self)

    def join(self, site: Site, actuator: Actuator, record: Record) -> None:
        """Bind to an engine; in shadow nothing goes to the actuator."""
        self.scheduling_pass.join(site, actuator if self.acting else None, record)

    def run_pass(self, now: float) -> float:
        """Decide what is due; return when a job is due again, `NEVER` if none is deferred."""
        queue = self.queue
        queue.release(now)
        try:
            self.scheduling_pass.decide_due()
        except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
            self.fail(error)
        return queue.next_due_s()

    def forget(self) -> None:
        """Drop everything stored about jobs."""
        super().forget()
        self.scheduling_pass.clear()

    def would_choose(self, job: Job, site: Site, rng: random.Random) -> dict[int, float]:
        """Return where the policy would start a job if it had to start now; between passes only.

        The policy's own random generator is not used. A policy that stores its choices stores this
        one, too: call this only for a policy that does not act.

        Args:
            job: a queued job.
            site: the view.
            rng: for what the policy draws in this call.

        Returns:
            Probability by machine, see `start_odds`; empty where the job may start on none, and
            where the policy fails.

        Raises:
            ValueError: the policy plans whole passes: it never decides one job alone.
            PolicyError: the policy fails, and is strict.
        """
        policy = self.policy
        if self.plans:
            raise ValueError(f"{self.name} plans whole passes")
        places = WatchedPlaces(site, job)
        if self.broken or not places.free_since:
            return {}
        own, policy.rng = policy.rng, rng
        try:
            return start_odds(policy, job, places)
        except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
            self.fail(error)
            return {}
        finally:
            policy.rng = own

    # -- the queue ----------------------------------------------------------------------------

    @property
    def any_waiting(self) -> bool:
        """True if a pending job could use a machine that frees."""
        return self.scheduling_pass.any_waiting

    def enqueue(self, number: int) -> None:
        """Add a job that must be decided: submitted, evicted or released."""
        if not self.broken:
            self.queue.enter(number)

    def decide_again(self) -> None:
        """Make all pending jobs due, and record their decisions even if they stay the same."""
        for pending in self.queue.waiting.values():
            pending.action = ""
        self.queue.decide_again(sent=START)  # of which none is left

    def dequeue(self, number: int, site: Site) -> PendingDecision | None:
        """Remove a job that is no longer pending; return its decision, None if not queued."""
        pending = self.queue.waiting.pop(number, None)
        if pending is None:
            return None
        if self.looks_at_runs:
            self._notify_dequeued(pending, site)
        if self.hand_back is not None:
            self.hand_back.limit.end(number)
        was_deferred = pending.deferred_before_s or pending.deferred_since_s is not None
        if was_deferred or not self.acting:  # in shadow a start is due again an epoch later, too
            self.queue.undefer(pending)
        if was_deferred:
            pending.end_deferral(site.now)
            self.longest_ended_deferral_s = max(
                self.longest_ended_deferral_s, pending.deferred_before_s
            )
            self.deferrals.add(number, pending.deferred_before_s)
        return pending

    def _notify_dequeued(self, pending: PendingDecision, site: Site) -> None:
        try:
            self.scheduling_pass.on_dequeue(pending, site)
        except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
            self.fail(error)

    def changed(self, job: Job, site: Site) -> None:
        """Update a job that is declared again; a pending one keeps its place in the queue."""
        pending = self.queue.waiting.get(job.number)
        if pending is None or not self.looks_at_runs or self.broken:
            return
        try:
            self.scheduling_pass.changed(job, pending, site)
        except Exception as error:  # noqa: BLE001 - a plugin's code; see `strict`
            self.fail(error)

    def next_look_s(self, number: int) -> float | None:
        """Return when a pending job is decided again; None: when a machine frees, or never."""
        pending = self.queue.waiting.get(number)
        if pending is None or pending.decided_s is None or pending.reason in UNCHOSEN:
            return None
        due_s = pending.decided_s + self.reconsider_s
        latest_s = self.latest_start_s(number)
        return due_s if latest_s is None else min(due_s, latest_s)

    def latest_start_s(self, number: int) -> float | None:
        """Return until when the policy may defer a deferred job; None: not deferred or no limit."""
        pending = self.queue.waiting.get(number)
        if pending is None or pending.deferred_since_s is None:
            return None
        most_s = self.policy.max_defer_s - pending.deferred_before_s
        return pending.deferred_since_s + most_s if most_s < inf else None

    # -- deferrals until now ------------------------------------------------------------------

    def deferred_s(self, now: float) -> dict[int, float]:
        """Return the seconds for which each pending job was deferred until now, by job number."""
        return {number: s.deferred_s(now) for number, s in self.queue.waiting.items()}

    def longest_deferral_s(self, now: float) -> float:
        """Return the longest deferral of any job, including pending ones, in seconds."""
        return max(self.longest_ended_deferral_s, *self.deferred_s(now).values(), 0.0)


# -- per job pass ----------------------------------------------------------------------------------
# A pass over one job at a time, in order of arrival or in the policy's fixed order.
#
# Jobs are decided at submission and immediately after an eviction. If no machine is free they wait
# and are decided when one frees. If the policy *chose* to defer one, it is decided again a decision
# epoch (`reconsider_s`) later, per job, and not merely because a machine frees.


class PerJobPass(SchedulingPass):
    """Pass that decides due jobs in order of arrival; a job that does not fit blocks no other."""

    def _decide(self) -> None:
        site, queue = self._site, self._queue
        blocked, waiting = queue.blocked, queue.waiting
        left_n = len(blocked)
        while left_n and site.free_total:
            left_n -= 1
            number, stamp = blocked.popleft()
            pending = waiting.get(number)
            if pending is not None and pending.stamp == stamp:
                self._decide_job(number, pending)
        if left_n and len(blocked) > left_n:  # those tried without success stay first
            blocked.rotate(len(blocked) - left_n)
        fresh, queue.fresh = queue.fresh, []
        for number, stamp in fresh:
            pending = waiting.get(number)
            if pending is None or pending.stamp != stamp:
                continue
            if site.free_total:
                self._decide_job(number, pending)
            else:
                self._block(number, pending)

    def _block(self, number: int, pending: PendingDecision) -> None:
        self._queue.block(number, pending)
        self._note_no_machine(number, pending)

    def _decide_job(self, number: int, pending: PendingDecision) -> None:
        job = self._site.jobs[number]
        choice = self._ask(job, pending)
        if choice.machine != NOWHERE:
            self._note_start(job, pending, choice)
            if self._actuator is None:  # a job that still waits is decided every epoch
                self._queue.defer(number, pending, self._site.now + self._runner.reconsider_s)
        elif choice.reason == NO_MACHINE:
            self._block(number, pending)
            pending.decided_s = self._site.now
        else:
            self._defer(number, pending, choice)


class OrderedPass(PerJobPass):
    """Pass in the policy's order: new jobs take their places before any job starts.

    Args:
        runner: the owner of policy and queue.
        policy: the same policy, typed as one that orders.
    """

    def __init__(self, runner: GuardedPolicy, policy: Orders) -> None:
        super().__init__(runner)
        self._orders = policy

    def _decide(self) -> None:
        site, queue = self._site, self._queue
        newcomers = list(queue.take_fresh())
        self._rank(newcomers)
        while site.free_total and (first := queue.pop_ranked()) is not None:
            self._decide_job(*first)
        self._rank(queue.take_blocked())  # they fit on no machine that was free
        for number, pending in newcomers:
            if pending.decided_s != site.now:
                self._note_no_machine(number, pending)

    def _rank(self, entries: Iterable[tuple[int, PendingDecision]]) -> None:
        for number, pending in entries:
            job = self._site.jobs[number]
            self._queue.rank(self._orders.order(job, self._site), number, pending)


# -- start odds ------------------------------------------------------------------------------------
# Probability of each machine, if a policy had to start a job now.
#
# For estimates from records, which weight what happened by its probability under a policy. Used
# outside passes: nothing is reserved, recorded or executed.

SAMPLED_CHOICES: Final = 16
"""Number of choices from which the probabilities of a random policy are estimated."""


class WatchedPlaces(OpenPlaces):
    """Machines on which a job may start, with a record of what a policy drew from.

    A machine that a policy draws at random represents all that could have been drawn, so that one
    choice covers all of them.

    Attributes:
        drawn: the machine drawn last; None before.
        drawn_from: the machines from which it was drawn.
    """

    drawn: int | None = None
    drawn_from: Sequence[int] = ()

    def draw(self, rng: random.Random) -> int:
        """Draw one of the machines, uniformly. Raises `LookupError` if there is none."""
        self.drawn_from = list(self.free_since)
        self.drawn = super().draw(rng)
        return self.drawn

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """Draw one of a cluster's machines, uniformly. Raises `LookupError` if there is none."""
        of = self.site.machine_cluster
        self.drawn_from = [machine for machine in self.free_since if of[machine] == cluster]
        self.drawn = super().draw_in(cluster, rng)
        return self.drawn

    def meant_by(self, machine: int) -> Sequence[int]:
        """Return the machines that a choice represents.

        All machines if the choice is none of them: as in a pass, one is drawn for a policy that
            names
        no machine although the job must start.
        """
        if machine not in self.free_since:
            return list(self.free_since)
        return self.drawn_from if machine == self.drawn else (machine,)


def start_odds(policy: Policy, job: Job, places: WatchedPlaces) -> dict[int, float]:
    """Return each machine's probability under a policy that may not defer a job.

    Args:
        policy: decides job by job (`Policy.choose`); it draws from its own `rng`.
        job: a queued job.
        places: where it may start; at least one machine.

    Returns:
        Probability by machine, of those above 0; their sum is 1. Exact where the policy draws from
        the view alone and its propensity is 1; otherwise the frequency in `SAMPLED_CHOICES` calls,
        which is unbiased.
    """
    odds: defaultdict[int, float] = defaultdict(float)
    asked_n = 0
    is_certain = len(places.free_since) == 1
    while asked_n < SAMPLED_CHOICES and not (is_certain and asked_n):
        asked_n += 1
        evaluation = None
        if isinstance(policy, Groups):
            evaluation = policy.evaluate_group(policy.group_key(job, places), places)
        choice = policy.choose(job, evaluation, places, False)
        alike = places.meant_by(choice.machine)
        for machine in alike:
            odds[machine] += 1.0 / len(alike)
        is_certain = is_certain or choice.propensity == 1.0  # of the machine's cluster
    return {machine: chance / asked_n for machine, chance in odds.items()}
