"""A policy that decides: its pending jobs, and scheduling passes over those that are due."""

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
    """Decides the pending jobs that are due, in the kind of pass that its policy declares.

    Args:
        policy, acting, reconsider_s, strict: as of `GuardedPolicy`.
        exact: remember each job that was deferred, for a report that knows the truth (replay).
        discipline: who may start before a job that does not fit: `outrider.model.modes`.
        is_narrow: every job asks for one CPU of any machine: whoever is first fits, and all
            disciplines are one.

    Attributes:
        discipline: the same; None where the policy plans and no job waits for another.
        deferrals: how long jobs were deferred.
        plans: the policy plans whole passes.
        looks_at_runs: it sees the whole queue, and what runs where.
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
        """As the policy declares that it decides."""
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
        """Decide what is due; returns when a job is due again, `NEVER` if none is deferred."""
        queue = self.queue
        queue.release(now)
        try:
            self.scheduling_pass.decide_due()
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self.fail(error)
        return queue.next_due_s()

    def forget(self) -> None:
        """Drop all that is remembered of jobs."""
        super().forget()
        self.scheduling_pass.clear()

    def would_choose(self, job: Job, site: Site, rng: random.Random) -> dict[int, float]:
        """Return where the policy would start a job if it had to start now; between passes only.

        The policy's own chance is left alone. One that remembers what it chose remembers this, too:
        ask a policy that does not act.

        Args:
            job: is queued.
            site: the view.
            rng: of what the policy draws for this.

        Returns:
            Probability by machine, as of `start_odds`; empty where the job may start on none, and
            where the policy fails.

        Raises:
            ValueError: the policy plans whole passes: it is never asked for one job.
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
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self.fail(error)
            return {}
        finally:
            policy.rng = own

    # -- the queue ----------------------------------------------------------------------------

    @property
    def somebody_waits(self) -> bool:
        """True if a pending job could use a machine that frees."""
        return self.scheduling_pass.somebody_waits

    def enqueue(self, number: int) -> None:
        """A job is pending and must be decided: submitted, evicted or released."""
        if not self.broken:
            self.queue.enter(number)

    def decide_anew(self) -> None:
        """All pending jobs are due, and their decisions are recorded even if they stay the same."""
        for pending in self.queue.waiting.values():
            pending.action = ""
        self.queue.decide_anew(sent=START)  # of which none is left

    def dequeue(self, number: int, site: Site) -> PendingDecision | None:
        """A job is no longer pending. Returns its pending decision; None if it was not queued."""
        pending = self.queue.waiting.pop(number, None)
        if pending is None:
            return None
        if self.looks_at_runs:
            self._tell_dequeued(pending, site)
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

    def _tell_dequeued(self, pending: PendingDecision, site: Site) -> None:
        try:
            self.scheduling_pass.on_dequeue(pending, site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self.fail(error)

    def changed(self, job: Job, site: Site) -> None:
        """A job is declared anew; if it is pending, it keeps its place in the queue."""
        pending = self.queue.waiting.get(job.number)
        if pending is None or not self.looks_at_runs or self.broken:
            return
        try:
            self.scheduling_pass.changed(job, pending, site)
        except Exception as error:  # noqa: BLE001 - a stranger's code; see `strict`
            self.fail(error)

    def next_look_s(self, number: int) -> float | None:
        """Return when a pending job is decided again; None: as soon as a machine frees, or never."""
        pending = self.queue.waiting.get(number)
        if pending is None or pending.decided_s is None or pending.reason in UNCHOSEN:
            return None
        due_s = pending.decided_s + self.reconsider_s
        latest_s = self.latest_start_s(number)
        return due_s if latest_s is None else min(due_s, latest_s)

    def latest_start_s(self, number: int) -> float | None:
        """Until when the policy may defer a job that it defers; None: it does not, or for ever."""
        pending = self.queue.waiting.get(number)
        if pending is None or pending.deferred_since_s is None:
            return None
        most_s = self.policy.max_defer_s - pending.deferred_before_s
        return pending.deferred_since_s + most_s if most_s < inf else None

    # -- deferrals until now ------------------------------------------------------------------

    def deferred_s(self, now: float) -> dict[int, float]:
        """Seconds for which each pending job was deferred until now, by job number."""
        return {number: s.deferred_s(now) for number, s in self.queue.waiting.items()}

    def longest_deferral_s(self, now: float) -> float:
        """Seconds for which any job was deferred, those that are pending included."""
        return max(self.longest_ended_deferral_s, *self.deferred_s(now).values(), 0.0)


# -- per job pass ----------------------------------------------------------------------------------
# A pass job by job: in order of arrival, or in the policy's fixed order.
#
# Jobs are decided at submission and at once after an eviction. If no machine is free they wait
# and are decided when one frees; if the policy *chose* to defer one, it is decided again
# a decision epoch (`reconsider_s`) later, per job, and not merely because a machine frees.


class PerJobPass(SchedulingPass):
    """Decides the jobs that are due in order of arrival; what fits nowhere lets others pass."""

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
        if left_n and len(blocked) > left_n:  # who was tried in vain stays before the rest
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
            if self._actuator is None:  # while the job still waits it is decided anew every epoch
                self._queue.defer(number, pending, self._site.now + self._runner.reconsider_s)
        elif choice.reason == NO_MACHINE:
            self._block(number, pending)
            pending.decided_s = self._site.now
        else:
            self._defer(number, pending, choice)


class OrderedPass(PerJobPass):
    """Decides them in the policy's order: newcomers take their places before anybody starts.

    Args:
        runner: whose policy and whose queue.
        policy: that policy, as one that orders.
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
# Where a policy would start a job if it had to start now: the probability of each machine.
#
# For estimates from records, which weigh what happened by how likely a policy makes it. Outside of
# passes: nothing is reserved, recorded or carried out.

ASKS: Final = 16
"""How often a policy that draws is asked: its probabilities are the frequencies of its choices."""


class WatchedPlaces(OpenPlaces):
    """The machines on which a job may start, and what a policy drew its machine from.

    A machine that a policy leaves to chance stands for all that could have been drawn, so that one
    choice tells of all of them.

    Attributes:
        drawn: the machine drawn last; None before.
        drawn_from: those of which it was one.
    """

    drawn: int | None = None
    drawn_from: Sequence[int] = ()

    def draw(self, rng: random.Random) -> int:
        """One of them, uniformly. Raises `LookupError` if there is none."""
        self.drawn_from = list(self.free_since)
        self.drawn = super().draw(rng)
        return self.drawn

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        """One of a cluster, uniformly. Raises `LookupError` if there is none."""
        of = self.site.machine_cluster
        self.drawn_from = [machine for machine in self.free_since if of[machine] == cluster]
        self.drawn = super().draw_in(cluster, rng)
        return self.drawn

    def meant_by(self, machine: int) -> Sequence[int]:
        """The machines between which a choice made no difference.

        All, where it is none of them: as in a pass, one is drawn for a policy that names no machine
        although the job must start.
        """
        if machine not in self.free_since:
            return list(self.free_since)
        return self.drawn_from if machine == self.drawn else (machine,)


def start_odds(policy: Policy, job: Job, places: WatchedPlaces) -> dict[int, float]:
    """The probability with which a policy that may not defer a job starts it on each machine.

    Args:
        policy: decides job by job (`Policy.choose`); it draws from its own `rng`.
        job: is queued.
        places: where it may start; at least one machine.

    Returns:
        Probability by machine, of those above 0; their sum is 1. Exact where the policy draws from
        the view alone and its propensity is 1; elsewhere the frequency in `ASKS` choices, which is
        right in the mean.
    """
    odds: defaultdict[int, float] = defaultdict(float)
    asked_n = 0
    is_certain = len(places.free_since) == 1
    while asked_n < ASKS and not (is_certain and asked_n):
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
