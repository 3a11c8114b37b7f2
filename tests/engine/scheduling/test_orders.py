"""Policies that put waiting jobs in an order of their own: sjf, edf; and best_fit by width."""

import pytest

from outrider.model import events as ev
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import EarliestDeadlineFirst, ShortestJobFirst
from outrider_policies.rules.placements import BestFit


def drained(site: HandSite, jobs: int) -> list[int]:
    """Let one machine work the queue off; the order in which jobs ran."""
    order: list[int] = []
    for _ in range(jobs):
        (job,) = site.tick(1.0)
        order.append(job)
        site.complete(job)
    return order


def test_the_shortest_estimate_runs_first_and_unknown_ones_last_by_age() -> None:
    site = HandSite(ShortestJobFirst)
    for job, estimate_s in enumerate([None, 500.0, 50.0, None, 5000.0]):
        site.submit(job, estimate_s=estimate_s)
    assert site.tick() == []
    site.machines(1)
    assert drained(site, 5) == [2, 1, 4, 0, 3]


def test_a_newcomer_that_is_shorter_overtakes_those_that_wait() -> None:
    site = HandSite(ShortestJobFirst)
    site.machines(1)
    site.submit(0, estimate_s=10.0)
    assert site.tick() == [0]
    site.submit(1, estimate_s=900.0)
    site.tick(1.0)
    site.submit(2, estimate_s=800.0)
    site.tick(1.0)
    site.complete(0)
    assert site.tick(1.0) == [2]


def test_a_newcomer_and_a_waiting_job_meet_in_one_round_in_the_right_order() -> None:
    site = HandSite(ShortestJobFirst)
    site.submit(0, estimate_s=900.0)
    site.tick()
    site.submit(1, estimate_s=5.0)
    site.machines(1)
    assert site.tick() == [1]


def test_an_evicted_job_gets_back_into_its_place() -> None:
    site = HandSite(ShortestJobFirst)
    site.machines(1)
    site.submit(0, estimate_s=100.0)
    site.tick()
    site.submit(1, estimate_s=200.0)
    site.submit(2, estimate_s=50.0)
    site.evict(0)
    assert drained(site, 3) == [2, 0, 1]


def test_no_machine_free_is_written_once_for_each_job() -> None:
    site = HandSite(ShortestJobFirst)
    for job in range(3):
        site.submit(job, estimate_s=10.0 * job)
    for _ in range(4):
        site.tick(5.0)
    assert [(row[1], row[2], row[5]) for row in site.decision_log.rows] == [
        (0, "defer", "no_machine"),
        (1, "defer", "no_machine"),
        (2, "defer", "no_machine"),
    ]


def test_a_job_that_left_is_passed_over() -> None:
    site = HandSite(ShortestJobFirst)
    for job in range(3):
        site.submit(job, estimate_s=float(job))
    site.tick()
    site.tell(ev.REMOVED, 0, "removed")
    site.machines(1)
    assert site.tick() == [1]


def test_the_nearest_deadline_runs_first() -> None:
    site = HandSite(EarliestDeadlineFirst, interactive_s=60.0, batch_s=1000.0, stretch_ratio=1.0)
    site.submit(0, estimate_s=10.0)  # due at 1010
    site.submit(1, estimate_s=500.0)  # due at 1500
    site.tick(900.0)
    site.submit(2, job_class="interactive", estimate_s=20.0)  # due at 980
    site.submit(3, job_class="interactive", estimate_s=300.0)  # due at 1260
    site.machines(1)
    assert drained(site, 4) == [2, 0, 3, 1]


def test_under_edf_a_batch_job_is_not_starved_by_interactive_ones() -> None:
    site = HandSite(EarliestDeadlineFirst, interactive_s=60.0, batch_s=600.0)
    site.machines(1)
    site.submit(0)
    site.submit(1)
    assert site.tick() == [0]
    running, began_s = 0, {}
    for job in range(2, 20):
        site.submit(job, job_class="interactive")
        site.complete(running)
        (running,) = site.tick(60.0)
        began_s[running] = site.now
    assert began_s[1] == pytest.approx(600.0, abs=60.0)


def test_eligible_time_moves_the_deadline() -> None:
    site = HandSite(EarliestDeadlineFirst)
    site.submit(0, eligible_s=5000.0)
    site.submit(1)
    site.machines(1)
    assert drained(site, 2) == [1, 0]


def test_a_narrow_job_leaves_the_wide_machine_whole() -> None:
    site = HandSite(BestFit)
    site.machines(8, 2, 4)
    site.submit(0, cpus=1)
    site.submit(1, cpus=3)
    site.submit(2, cpus=8)
    site.tick()
    assert site.starts == [(0, 1), (1, 2), (2, 0)]


def test_machines_partly_used_are_filled_up_first() -> None:
    site = HandSite(BestFit)
    site.machines(4, 4)
    site.submit(0, cpus=3)
    site.tick()
    site.submit(1, cpus=1)
    site.tick(1.0)
    assert {machine for _, machine in site.starts} == {site.starts[0][1]}


def test_a_job_that_fits_nowhere_waits_without_being_held_by_choice() -> None:
    site = HandSite(BestFit)
    site.machines(4)
    site.submit(0, cpus=3)
    site.tick()
    site.submit(1, cpus=2)
    site.submit(2, cpus=1)
    assert site.tick(1.0) == [2]
    site.tick(7200.0)
    assert site.runner.longest_ended_deferral_s == 0.0
    assert site.decision_log.rows[-2][1:3] == (1, "defer")
    site.complete(0)
    assert site.tick(1.0) == [1]


def test_a_job_wider_than_any_machine_never_starts_and_stops_nobody() -> None:
    site = HandSite(BestFit)
    site.machines(2)
    site.submit(0, cpus=16)
    site.submit(1, cpus=2)
    assert site.tick() == [1]
    assert site.tick(10_000.0) == []
    assert "16 CPUs" in site.policy.explain(site.site.jobs[0], site.site)
