"""A round: one policy decides what is due, and what it chose stands in line.

Here is what all rounds share: how a decision is written down, once when it begins, changes its
reason or ends. `line_round` decides job by job, `queue_round` ranks all that wait, `plan_round`
lets the policy plan everything at once.
"""

from collections import Counter
from collections.abc import Callable, Hashable
from typing import Any, Final, Protocol

from outrider.api.capabilities import Groups
from outrider.api.policy import Policy
from outrider.engine.plain_data import check_key
from outrider.engine.ports import Sink
from outrider.engine.scheduling.pending_jobs import Line, Standing
from outrider.engine.state.site import Site
from outrider.model.decisions import DEFER, NO_MACHINE, NOWHERE, START, Choice
from outrider.model.jobs import Job

GUARD: Final = "guard"
SHORTEST_HOLD_S: Final = 1.0


class Tally(Protocol):
    """Who decides, and counts it: the seat."""

    policy: Policy
    line: Line
    reconsider_s: float
    decisions: int
    starts: int
    moves: Counter[str]


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
        self._groups = seat.policy if isinstance(seat.policy, Groups) else None
        self._evaluations: dict[Hashable, Any] = {}
        self._reserved: list[tuple[int, int]] = []

    def join(self, site: Site, sink: Sink | None, record: Record) -> None:
        """Come to an engine's table, before the first decision.

        Args:
            site: the view.
            sink: carries decisions out; None in shadow.
            record: writes a ledger row.
        """
        self._site, self._sink, self._record = site, sink, record

    def decide_due(self) -> None:
        """Decide everything that is due; nobody chooses the same CPUs twice."""
        try:
            self._decide()
        finally:
            for machine, cpus in self._reserved:
                self._site.unreserve(machine, cpus)
            self._reserved.clear()
            self._evaluations.clear()

    def _decide(self) -> None:
        raise NotImplementedError

    def withdrew(self, standing: Standing, site: Site) -> None:
        """A job is no longer in line."""

    def changed(self, job: Job, standing: Standing, site: Site) -> None:
        """A job in line is declared anew."""

    @property
    def somebody_waits(self) -> bool:
        """Whether a machine that frees concerns anybody here."""
        return self._line.somebody_waits

    def clear(self) -> None:
        """Everybody goes."""

    def save(self) -> dict[str, Any]:
        """What it keeps beside the line, as plain data."""
        return {}

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Go on from what `save` gave."""

    # -- what is asked ------------------------------------------------------------------------

    def _ask(self, job: Job, standing: Standing) -> tuple[Choice, float]:
        """What the policy says of one job, and for how many seconds more it may keep it.

        A job that may not be kept any more, and is, starts on a free machine drawn for it.
        """
        site, policy, groups, evaluation = self._site, self._policy, self._groups, None
        if groups is not None:
            key = policy.group_key(job, site)
            evaluations = self._evaluations
            try:
                if key in evaluations:
                    evaluation = evaluations[key]
                else:
                    evaluation = evaluations[key] = groups.evaluate_group(key, site)
            except TypeError:
                check_key(key)  # a set or a list cannot even be looked up
                raise
        left_s = policy.max_defer_s - standing.held_s
        if standing.hold_since_s is not None:
            left_s -= site.now - standing.hold_since_s
        may_defer = left_s >= SHORTEST_HOLD_S
        choice = policy.choose(job, evaluation, site, may_defer)
        if not may_defer and choice.machine == NOWHERE and choice.reason != NO_MACHINE:
            choice = Choice(site.draw(policy.rng), GUARD)
        return choice, left_s

    def _keep(self, number: int, standing: Standing, choice: Choice, left_s: float) -> None:
        """It stays queued by choice, and is due again a decision epoch later."""
        now, reconsider_s = self._site.now, self._seat.reconsider_s
        if standing.hold_since_s is None:
            standing.hold_since_s = now
        if left_s < reconsider_s:
            self._line.hold_shorter(number, standing, now + left_s)
        else:
            self._line.hold(number, standing, now + reconsider_s)
        standing.decided_s = now
        self._note_keep(number, standing, choice.reason, choice)

    # -- what is written down -----------------------------------------------------------------

    def _note_no_machine(self, number: int, standing: Standing) -> None:
        standing.end_hold(self._site.now)
        if standing.action != DEFER or standing.reason != NO_MACHINE:
            standing.decided_s = self._site.now
            self._note_keep(number, standing, NO_MACHINE, None)

    def _note_keep(
        self, number: int, standing: Standing, reason: str, choice: Choice | None
    ) -> None:
        if standing.action != DEFER or standing.reason != reason:
            standing.action, standing.reason, standing.cluster = DEFER, reason, NOWHERE
            self._seat.decisions += 1
            self._record(self._seat, number, DEFER, NOWHERE, 0, reason, choice)

    def _note_start(self, job: Job, standing: Standing, choice: Choice) -> None:
        """It starts; in shadow it would, and is not written down again while that stands."""
        site, seat, number, machine = self._site, self._seat, job.number, choice.machine
        cpus, cluster, now = job.spec.cpus, site.machine_cluster[machine], site.now
        if standing.hold_since_s is not None:
            standing.end_hold(now)
        site.reserve(machine, cpus)
        self._reserved.append((machine, cpus))
        sink, reason = self._sink, choice.reason
        again = sink is None and standing.action == START and standing.cluster == cluster
        standing.decided_s, standing.action, standing.reason = now, START, reason
        standing.cluster = cluster
        if again:
            return
        if sink is not None:
            sink.start(number, machine)
        seat.decisions += 1
        seat.starts += 1
        self._record(seat, number, START, machine, cpus, reason, choice)
