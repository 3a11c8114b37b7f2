"""A round over a line: jobs are decided one by one, as they got in line or in a fixed order.

Jobs are decided at submission and at once after an eviction. If no machine is free they wait in
line and are decided when one frees; if the policy *chose* to keep one queued, it is decided again
a decision epoch (`reconsider_s`) later, per job, and not merely because a machine frees.
"""

from collections.abc import Iterable

from outrider.api.capabilities import Orders
from outrider.engine.scheduling.pending_jobs import PendingDecision
from outrider.engine.scheduling.scheduling_pass import Round, Tally
from outrider.model.decisions import NO_MACHINE, NOWHERE


class PerJobPass(Round):
    """Decides the jobs that are due in order of arrival; what fits nowhere lets others pass."""

    def _decide(self) -> None:
        site, line = self._site, self._line
        blocked, waiting = line.blocked, line.waiting
        left_n = len(blocked)
        while left_n and site.free_total:
            left_n -= 1
            number, stamp = blocked.popleft()
            pending = waiting.get(number)
            if pending is not None and pending.stamp == stamp:
                self._decide_job(number, pending)
        if left_n and len(blocked) > left_n:  # who was tried in vain stays before the rest
            blocked.rotate(len(blocked) - left_n)
        fresh, line.fresh = line.fresh, []
        for number, stamp in fresh:
            pending = waiting.get(number)
            if pending is None or pending.stamp != stamp:
                continue
            if site.free_total:
                self._decide_job(number, pending)
            else:
                self._block(number, pending)

    def _block(self, number: int, pending: PendingDecision) -> None:
        self._line.block(number, pending)
        self._note_no_machine(number, pending)

    def _decide_job(self, number: int, pending: PendingDecision) -> None:
        job = self._site.jobs[number]
        choice = self._ask(job, pending)
        if choice.machine != NOWHERE:
            self._note_start(job, pending, choice)
            if self._actuator is None:  # while the job still waits it is decided anew every epoch
                self._line.hold(number, pending, self._site.now + self._runner.reconsider_s)
        elif choice.reason == NO_MACHINE:
            self._block(number, pending)
            pending.decided_s = self._site.now
        else:
            self._keep(number, pending, choice)


class OrderedPass(PerJobPass):
    """Decides them in the policy's order: newcomers take their places before anybody starts.

    Args:
        runner: whose policy and whose line.
        policy: that policy, as one that orders.
    """

    def __init__(self, runner: Tally, policy: Orders) -> None:
        super().__init__(runner)
        self._orders = policy

    def _decide(self) -> None:
        site, line = self._site, self._line
        newcomers = list(line.take_fresh())
        self._rank(newcomers)
        while site.free_total and (first := line.pop_ranked()) is not None:
            self._decide_job(*first)
        self._rank(line.take_blocked())  # they fit on no machine that was free
        for number, pending in newcomers:
            if pending.decided_s != site.now:
                self._note_no_machine(number, pending)

    def _rank(self, entries: Iterable[tuple[int, PendingDecision]]) -> None:
        for number, pending in entries:
            job = self._site.jobs[number]
            self._line.rank(self._orders.order(job, self._site), number, pending)
