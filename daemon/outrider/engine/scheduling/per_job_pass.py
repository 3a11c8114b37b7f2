"""A pass job by job: in order of arrival, or in the policy's fixed order.

Jobs are decided at submission and at once after an eviction. If no machine is free they wait
and are decided when one frees; if the policy *chose* to defer one, it is decided again
a decision epoch (`reconsider_s`) later, per job, and not merely because a machine frees.
"""

from collections.abc import Iterable

from outrider.api.capabilities import Orders
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision
from outrider.engine.scheduling.scheduling_pass import SchedulingPass
from outrider.model.decisions import NO_MACHINE, NOWHERE


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
