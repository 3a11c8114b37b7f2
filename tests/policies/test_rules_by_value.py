"""Fixed rules, number by number: their orders, what they say of a job, and what fits nowhere."""

from typing import Any

import pytest

from outrider.api import NO_MACHINE, NOWHERE, Choice, Job, JobSpec, Policy
from outrider.model import events as ev
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import EarliestDeadlineFirst, ShortestJobFirst
from outrider_policies.rules.placements import BestFit, CapacityRandom, LeastLoaded, RoundRobin
from outrider_policies.rules.shares import Multifactor

RULES = (
    CapacityRandom, LeastLoaded, RoundRobin, EarliestDeadlineFirst, ShortestJobFirst, BestFit,
)  # fmt: skip


def choice_of(hand: HandSite, job: Job) -> Choice:
    """Return the policy's explanation of one job."""
    choice: Choice = hand.policy.choose(job, None, hand.site, True)
    return choice


@pytest.mark.parametrize(
    "kind",
    [CapacityRandom, LeastLoaded, RoundRobin, EarliestDeadlineFirst, ShortestJobFirst, BestFit],
)
def test_a_job_that_fits_on_no_free_machine_waits_for_one(kind: type[Policy]) -> None:
    hand = HandSite(kind)
    hand.machines(2, 4)
    choice = choice_of(hand, Job(0, JobSpec(cpus=8), 0.0))
    assert (choice.machine, choice.reason) == (NOWHERE, NO_MACHINE)
    assert choice_of(hand, Job(0, JobSpec(cpus=4), 0.0)).machine == 1


def test_machines_take_turns_and_a_full_one_is_passed_over() -> None:
    hand = HandSite(RoundRobin)
    hand.machines(1, 2, 1)
    for job in range(4):
        hand.submit(job)
    assert hand.tick() == [0, 1, 2, 3]
    first = hand.starts[0][1]
    turn = [(first + n) % 3 for n in range(3)]
    assert [machine for _, machine in hand.starts] == [*turn, 1]
    assert hand.policy.explain(hand.site.jobs[0], hand.site).endswith("after machine no. 1")
    again = HandSite(RoundRobin)
    again.engine.restore(hand.engine.save())
    assert again.policy.save(again.site) == {"last": 1}


def test_a_fast_and_wide_machine_is_drawn_by_its_capacity() -> None:
    hand = HandSite(CapacityRandom)
    hand.machines(1, cluster="slow")
    hand.machines(2, 4, cluster="fast", speed=1.5)
    drawn = [choice_of(hand, Job(0, JobSpec(), 0.0)) for _ in range(2_000)]
    counts = [sum(choice.machine == machine for choice in drawn) for machine in range(3)]
    # 1, 3 and 6 of ten
    assert counts == [pytest.approx(2_000 * share, rel=0.2) for share in (0.1, 0.3, 0.6)]
    propensities = {choice.machine: choice.propensity for choice in drawn}
    assert propensities == pytest.approx({0: 0.1, 1: 0.9, 2: 0.9})
    wide = choice_of(hand, Job(0, JobSpec(cpus=3), 0.0))
    assert (wide.machine, wide.propensity) == (2, 1.0)


def deadline(hand: HandSite, submit_s: float | None, **spec: Any) -> float:
    order: float = hand.policy.order(Job(0, JobSpec(**spec), submit_s), hand.site)
    return order


def test_a_deadline_is_the_submission_the_time_of_the_class_and_the_estimate() -> None:
    hand = HandSite(EarliestDeadlineFirst)
    assert deadline(hand, 100.0) == 100.0 + 14_400.0
    assert deadline(hand, 100.0, job_class="interactive") == 400.0
    assert deadline(hand, 100.0, job_class="interactive", estimate_s=60.0) == 460.0
    assert deadline(hand, 100.0, eligible_s=1_000.0) == 15_400.0
    assert deadline(hand, 100.0, eligible_s=50.0) == 14_500.0
    assert deadline(hand, None, estimate_s=60.0) == float("-inf")
    other = HandSite(EarliestDeadlineFirst, batch_s=10.0, interactive_s=1.0, stretch_ratio=2.0)
    assert deadline(other, 100.0, estimate_s=60.0) == 230.0
    assert deadline(other, 100.0, estimate_s=60.0, job_class="interactive") == 221.0


def test_it_is_said_when_the_deadline_is_or_was() -> None:
    hand = HandSite(EarliestDeadlineFirst, batch_s=600.0)
    hand.now = 300.0
    hand.tell(ev.TICK, 0)

    def said(submit_s: float | None) -> str:
        told: str = hand.policy.explain(Job(0, JobSpec(), submit_s), hand.site)
        return told

    assert said(0.0) == "its deadline is in 5 min; jobs with an earlier one start before it"
    assert said(-600.0).startswith("its deadline is 5 min ago; ")
    assert said(-36_300.0).startswith("its deadline is 600 min ago; ")
    assert said(-301.0).startswith("its deadline is 0 min ago; ")
    assert said(-300.0).startswith("its deadline is in 0 min; ")
    assert said(None).startswith("its submission time is unknown: it counts as the oldest")


def test_the_shortest_is_first_and_who_said_nothing_is_last() -> None:
    hand = HandSite(ShortestJobFirst)
    hand.machines(1)
    for job, estimate_s in enumerate((600.0, None, 60.0, 3600.0)):
        hand.submit(job, estimate_s=estimate_s)
    order = []
    for _ in range(4):
        [job] = hand.tick(1.0)
        order.append(job)
        hand.complete(job)
    assert order == [2, 0, 3, 1]
    said = hand.policy.explain(Job(0, JobSpec(estimate_s=600.0), 0.0), hand.site)
    assert said == "jobs estimated to run less than 10 min start before it"
    said = hand.policy.explain(Job(0, JobSpec(), 0.0), hand.site)
    assert said.startswith("it has no estimated run time")


def test_usage_that_lowers_a_priority_outlasts_a_restart() -> None:
    hand = HandSite(Multifactor, shares={"a": 0.5, "b": 0.5})
    hand.machines(1)
    hand.submit(0, vo="a")
    hand.tick()
    hand.now = 36_000.0
    hand.complete(0)
    for job, vo in ((1, "a"), (2, "b")):
        hand.submit(job, vo=vo)
    again = HandSite(Multifactor, shares={"a": 0.5, "b": 0.5})
    again.engine.restore(hand.engine.save())
    again.now = hand.now
    assert again.tick() == [2], "a has had its share"
    assert hand.tick() == [2]
