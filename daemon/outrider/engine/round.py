"""A round: one policy decides the jobs that are due, and what it chose stands in line.

Jobs are decided at submission and at once after an eviction. If no machine is free they wait in
line and are decided when one frees; if the policy *chose* to keep one queued, it is decided again
a decision epoch (`reconsider_s`) later, per job, and not merely because a machine frees.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final, Protocol

from outrider.api.policy import Policy
from outrider.engine.line import Line, Standing
from outrider.engine.site import Site
from outrider.model.decisions import KEEP, NO_MACHINE, NOWHERE, START, Choice
from outrider.model.jobs import Job

GUARD: Final = "guard"
SHORTEST_HOLD_S: Final = 1.0

Start = Callable[[int, int], None]
"""Carries a start out: job, machine."""


class Tally(Protocol):
    """Who decides, and counts it: the seat."""

    policy: Policy
    line: Line
    reconsider_s: float
    decisions: int
    starts: int


Record = Callable[[Any, int, str, int, int, str, Choice | None], None]
"""Called for every ledger row: seat, job, action, machine, cpus, reason, choice."""


class Round:
    """Decides what is due for one seat, again and again.

    Args:
        seat: whose policy and whose line.
    """

    def __init__(self, seat: Tally) -> None:
        self._seat = seat
        self._policy = seat.policy
        self._line = seat.line
        self._appraises = type(seat.policy).appraise is not Policy.appraise
        self._orders = type(seat.policy).order is not Policy.order
        self._appraisals: dict[Hashable, Any] = {}

    def decide_due(
        self, site: Site, reserved: list[int], start: Start | None, record: Record
    ) -> None:
        """Decide every job that is due.

        Args:
            site: the view.
            reserved: takes the machines chosen in this round; the caller frees them after it.
            start: carries a start out; None in shadow.
            record: writes a ledger row.
        """
        self._site, self._reserved, self._start, self._record = site, reserved, start, record
        self._appraisals.clear()
        if self._orders:
            self._in_the_policys_order()
        else:
            self._in_order_of_arrival()

    def _in_order_of_arrival(self) -> None:
        site, line = self._site, self._line
        blocked, waiting = line.blocked, line.waiting
        for _ in range(len(blocked)):
            if not site.free_total:
                break
            number, stamp = blocked.popleft()
            standing = waiting.get(number)
            if standing is not None and standing.stamp == stamp:
                self._decide(number, standing)
        for number, standing in line.take_fresh():
            if site.free_total:
                self._decide(number, standing)
            else:
                self._block(number, standing)

    def _in_the_policys_order(self) -> None:
        """Newcomers take their places; then the first in line are decided while machines last."""
        site, line = self._site, self._line
        newcomers = list(line.take_fresh())
        self._rank(newcomers)
        while site.free_total and (first := line.pop_ranked()) is not None:
            self._decide(*first)
        self._rank(line.take_blocked())  # they fit on no machine that was free
        for number, standing in newcomers:
            if standing.decided_s != site.now:
                self._note_no_machine(number, standing)

    def _rank(self, entries: Iterable[tuple[int, Standing]]) -> None:
        for number, standing in entries:
            job = self._site.jobs[number]
            self._line.rank(self._policy.order(job, self._site), number, standing)

    def _block(self, number: int, standing: Standing) -> None:
        self._line.block(number, standing)
        self._note_no_machine(number, standing)

    def _note_no_machine(self, number: int, standing: Standing) -> None:
        standing.end_hold(self._site.now)
        if standing.action != KEEP or standing.reason != NO_MACHINE:
            standing.action, standing.reason, standing.cluster = KEEP, NO_MACHINE, NOWHERE
            standing.decided_s = self._site.now
            self._seat.decisions += 1
            self._record(self._seat, number, KEEP, NOWHERE, 0, NO_MACHINE, None)

    def _decide(self, number: int, standing: Standing) -> None:
        site, policy = self._site, self._policy
        job, now = site.jobs[number], site.now
        appraisal = None
        if self._appraises:
            key = policy.alike(job, site)
            appraisals = self._appraisals
            if key in appraisals:
                appraisal = appraisals[key]
            else:
                appraisal = appraisals[key] = policy.appraise(key, site)
        left_s = policy.max_hold_s - standing.held_s
        if standing.hold_since_s is not None:
            left_s -= now - standing.hold_since_s
        may_keep = left_s >= SHORTEST_HOLD_S
        choice = policy.choose(job, appraisal, site, may_keep)
        if choice.machine != NOWHERE:
            self._start_run(job, standing, choice)
        elif choice.reason == NO_MACHINE:
            self._block(number, standing)
        elif may_keep:
            self._keep(number, standing, choice, left_s)
        else:
            self._start_run(job, standing, Choice(site.draw(policy.rng), GUARD))
        standing.decided_s = now

    def _keep(self, number: int, standing: Standing, choice: Choice, left_s: float) -> None:
        now, reconsider_s = self._site.now, self._seat.reconsider_s
        if standing.hold_since_s is None:
            standing.hold_since_s = now
        if left_s < reconsider_s:
            self._line.hold_shorter(number, standing, now + left_s)
        else:
            self._line.hold(number, standing, now + reconsider_s)
        if standing.action != KEEP or standing.reason != choice.reason:
            standing.action, standing.reason, standing.cluster = KEEP, choice.reason, NOWHERE
            self._seat.decisions += 1
            self._record(self._seat, number, KEEP, NOWHERE, 0, choice.reason, choice)

    def _start_run(self, job: Job, standing: Standing, choice: Choice) -> None:
        site, number, machine = self._site, job.number, choice.machine
        cluster = site.machine_cluster[machine]
        if standing.hold_since_s is not None:
            standing.end_hold(site.now)
        site.reserve(machine)
        self._reserved.append(machine)
        again = standing.action == START and standing.cluster == cluster
        standing.action, standing.reason, standing.cluster = START, choice.reason, cluster
        if self._start is not None:
            self._start(number, machine)
        else:  # nobody carries it out: while the job still waits it is decided anew every epoch
            self._line.hold(number, standing, site.now + self._seat.reconsider_s)
            if again:
                return
        self._seat.decisions += 1
        self._seat.starts += 1
        self._record(self._seat, number, START, machine, job.cpus, choice.reason, choice)
