"""A policy that decides: its pending jobs, and scheduling passes over those that are due."""

import random
from math import inf

from outrider.api.capabilities import Decides, Orders, Plans, Ranks
from outrider.api.policy import Policy
from outrider.engine.accounting.deferrals import Deferrals
from outrider.engine.ports import Actuator
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision
from outrider.engine.scheduling.per_job_pass import OrderedPass, PerJobPass
from outrider.engine.scheduling.plan_pass import PlanPass
from outrider.engine.scheduling.queue_pass import QueuePass
from outrider.engine.scheduling.ranking_pass import RankingPass
from outrider.engine.scheduling.scheduling_pass import Record, SchedulingPass
from outrider.engine.scheduling.start_odds import WatchedPlaces, start_odds
from outrider.engine.state.site import Site
from outrider.model.decisions import START, UNCHOSEN
from outrider.model.disciplines import FIRST_FIT, Discipline
from outrider.model.jobs import Job


class DecidingPolicy(GuardedPolicy):
    """Decides the pending jobs that are due, in the kind of pass that its policy declares.

    Args:
        policy, acting, reconsider_s, strict: as of `GuardedPolicy`.
        exact: remember each job that was deferred, for a report that knows the truth (replay).
        discipline: who may start before a job that does not fit: `outrider.model.disciplines`.
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
        """Where the policy would start a job if it had to start now; between passes only.

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
        """Whether a pending job could use a machine that frees."""
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
        """When a pending job is decided again; None: as soon as a machine frees, or never."""
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
