"""Times and machines at which a planning policy plans again."""

from collections.abc import Iterable
from typing import Any

import pytest

from outrider.api import Move, Policy, Queue, SiteView
from outrider.model.machines import Resources
from outrider.testing.fixtures import HandSite, chance
from outrider_policies.planning.baselines import Aggressive, Replan
from outrider_policies.planning.planner import PlanningSettings, RoundPlanner
from tests.policies.views import HandView, outcome, waiting_job


class Counting(RoundPlanner[PlanningSettings]):
    """Counts how often it is asked to rearrange."""

    name = "counting"
    description = "for tests"
    asked_n = 0

    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        self.asked_n += 1
        return ()


def test_it_plans_after_news_and_when_time_passed_but_not_after_its_own_moves() -> None:
    policy, view = Counting(PlanningSettings(), chance("counting")), HandView([1], [100.0])
    queue: Any = None
    asked = []
    news: list[Any] = [
        lambda: None,  # nothing but its own moves
        lambda: policy.on_enqueue(waiting_job(), view),
        lambda: None,
        lambda: policy.on_machine_event(0, 0, view),
        lambda: policy.observe(outcome(0, key=(0.0, 5.0, 1, "batch")), view, True),
        lambda: setattr(view, "now", 7.0),
        lambda: None,
    ]
    policy.plan(queue, view)
    for happens in news:
        happens()
        policy.plan(queue, view)
        asked.append(policy.asked_n)
    assert asked == [1, 2, 2, 3, 4, 5, 5]


def test_whether_there_was_news_is_known_after_a_restart() -> None:
    view = HandView([1], [100.0])
    queue: Any = None
    for has_news in (False, True):
        before, after = (Counting(PlanningSettings(), chance("counting")) for _ in range(2))
        before.plan(queue, view)
        if has_news:
            before.on_machine_event(0, 0, view)
        after.restore(before.save(view), view)
        after.plan(queue, view)
        assert after.asked_n == int(has_news)


def test_by_default_runs_may_be_suspended_and_machines_shared_out() -> None:
    assert (PlanningSettings().preempt, PlanningSettings().oversubscribe) == (True, True)


@pytest.mark.parametrize("kind", [Replan, Aggressive])
def test_a_job_is_planned_where_there_is_what_it_asks_for(kind: type[Policy]) -> None:
    """Planned elsewhere it would be refused, and wait beside a machine that suits it."""
    hand = HandSite(kind)
    hand.machines(4, resources=Resources(memory_mib=4_000))
    hand.machines(4, resources=Resources(memory_mib=16_000))
    hand.submit(0, cpus=2, estimate_s=60.0, resources=Resources(memory_mib=8_000))
    assert hand.tick() == [0]
    assert hand.starts == [(0, 1)]
    hand.submit(1, cpus=1, estimate_s=60.0, resources=Resources(memory_mib=9_000))
    hand.submit(2, cpus=1, estimate_s=60.0, resources=Resources(memory_mib=3_000))
    assert hand.tick(1.0) == [2], "8 of 16 GB are left on the one, 4 on the other"
    assert not any(hand.runner.refused.values()), "no impossible move was planned"
