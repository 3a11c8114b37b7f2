"""Runs after a restart: the same order, the same expected ends, none forgotten."""

from collections.abc import Iterable, Iterator

import pytest

from outrider.api import RESUME, SUSPENDED_STATE, Move, Plans, Policy, Queue, SiteView
from outrider.model import events as ev
from outrider.model.modes import Discipline
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import ShortestJobFirst
from outrider_policies.rules.placements import Fifo


class Resuming(Plans, Policy):
    """Policy that resumes preempted jobs."""

    name = "resuming"
    description = "for tests: lets the preempted go on"
    resumed: tuple[int, ...] = ()

    def plan(self, queue: Queue, view: SiteView) -> Iterator[Move]:
        """Yield the resumption of every preempted job."""
        for job in queue.jobs:
            if job.state == SUSPENDED_STATE:
                self.resumed += (job.number,)
                yield Move(RESUME, job.number, job.machine, 1, "on")


def running(jobs: Iterable[int], kind: type[Policy] = Resuming) -> HandSite:
    """A machine of eight CPUs on which these jobs run since second 0, expected to take 100 s."""
    hand = HandSite(kind)
    hand.machines(8)
    for job in jobs:
        hand.submit(job, cpus=2, estimate_s=100.0)
        hand.tell(ev.STARTED, job, (0, 2))
    return hand


def again(hand: HandSite, kind: type[Policy] = Resuming) -> HandSite:
    """The same after a restart."""
    fresh = HandSite(kind)
    fresh.engine.restore(hand.engine.save())
    fresh.now = hand.now
    return fresh


def test_runs_keep_their_order_and_their_expected_ends() -> None:
    hand = running([0, 1, 2])
    hand.now = 30.0
    hand.tell(ev.RESIZED, 0, 1)
    hand.now = 150.0  # 1 and 2 are overdue since 100
    fresh = again(hand)
    for site in (hand.site, fresh.site):
        assert [job.number for job in site.running_on(0)] == [1, 2, 0]
        assert site.runs is not None
        assert [(end.end_s, end.job) for end in site.runs.ends(0)] == [(100, 1), (100, 2), (170, 0)]


@pytest.mark.parametrize("extra", [None, ev.CPUS_GIVEN_BACK])
@pytest.mark.parametrize("kind", [ev.REMOVED, ev.COMPLETED, ev.EVICTED])
def test_a_suspended_job_may_end_after_a_restart(extra: str | None, kind: int) -> None:
    hand = running([0])
    hand.now = 30.0
    hand.tell(ev.SUSPENDED, 0, extra)
    fresh = again(hand)
    fresh.tell(kind, 0, None if kind == ev.COMPLETED else "user")
    assert list(fresh.site.running) == []
    assert fresh.site.busy == [0]


@pytest.mark.parametrize("extra", [None, ev.CPUS_GIVEN_BACK])
def test_so_it_may_if_nobody_looked_at_runs_before(extra: str | None) -> None:
    hand = running([0], Fifo)
    hand.now = 30.0
    hand.tell(ev.SUSPENDED, 0, extra)
    fresh = again(hand)
    fresh.tell(ev.REMOVED, 0, "user")
    assert list(fresh.site.running) == []


def test_a_policy_that_looks_at_runs_and_is_new_after_a_restart_sees_those_from_before() -> None:
    hand = running([0, 1, 2], Fifo)
    hand.now = 30.0
    hand.tell(ev.SUSPENDED, 1)  # it keeps its CPUs
    hand.tell(ev.SUSPENDED, 2, ev.CPUS_GIVEN_BACK)
    assert hand.site.runs is None
    fresh = again(hand)
    assert fresh.site.runs is not None
    assert [job.number for job in fresh.site.running_on(0)] == [0, 1]
    assert [end.job for end in fresh.site.runs.ends(0)] == [0, 1]
    assert fresh.site.runs.ends(0)[0].end_s == 100.0


def test_a_policy_that_is_new_after_a_restart_resumes_who_was_preempted_before() -> None:
    hand = running([0], Fifo)
    hand.tell(ev.SUSPENDED, 0, ev.CPUS_GIVEN_BACK)
    fresh = again(hand)
    (runner,) = fresh.engine.runners
    runner.acting = False  # nothing of what it plans is carried out
    runner.join(fresh.site, fresh, lambda *row: None)
    runner.run_pass(fresh.site.now)
    assert isinstance(fresh.policy, Resuming)
    assert fresh.policy.resumed == (0,)


@pytest.mark.parametrize(
    ("before", "after"), [("first_fit", "easy"), ("easy", "first_fit"), ("strict", "easy")]
)
def test_who_waits_still_does_when_the_discipline_changes(
    before: Discipline, after: Discipline
) -> None:
    hand = HandSite(ShortestJobFirst, before)
    hand.machines(2)
    hand.submit(0, cpus=2, estimate_s=50.0)
    assert hand.tick() == [0]
    hand.submit(1, cpus=2, estimate_s=50.0)
    hand.submit(2, cpus=2, estimate_s=20.0)
    assert hand.tick(1.0) == []
    fresh = HandSite(ShortestJobFirst, after)
    fresh.engine.restore(hand.engine.save())
    fresh.now = hand.now
    fresh.tick()
    fresh.complete(0)
    assert fresh.tick(1.0) == [2]
    fresh.complete(2)
    assert fresh.tick(1.0) == [1]
