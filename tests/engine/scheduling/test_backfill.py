"""Backfill: who may pass the first in line when it does not fit, and who may not."""

import heapq
from collections.abc import Sequence
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import Policy
from outrider_policies.rules.edf import EarliestDeadlineFirst
from outrider_policies.rules.f1 import F1
from outrider_policies.rules.fifo import Fifo
from outrider_policies.rules.sjf import ShortestJobFirst
from outrider_policies.rules.unicep import Unicep
from outrider_policies.rules.wfp3 import Wfp3
from tests.fixtures.hand_workload import Asked, make_workload, started_at

ORDERS = [Fifo, ShortestJobFirst, EarliestDeadlineFirst, Wfp3, Unicep, F1]

LONG = Asked(0.0, 100.0, 3)
WIDE = Asked(1.0, 100.0, 4)


def starts(
    machines: Sequence[int], jobs: Sequence[Asked], backfill: str, kind: type[Policy] = Fifo
) -> list[float]:
    """When each started, in the order of the jobs."""
    found = started_at(make_workload(machines, jobs), kind, backfill)
    return [found[f"j{number}"] for number in range(len(jobs))]


@pytest.mark.parametrize("kind", ORDERS)
def test_without_backfill_nobody_passes_the_first_in_line(kind: type[Policy]) -> None:
    jobs = [LONG, WIDE, Asked(2.0, 1000.0, 1)]
    assert starts([4], jobs, "none", kind) == [0.0, 100.0, 200.0]


def test_under_easy_a_job_passes_that_ends_before_the_first_could_start() -> None:
    jobs = [LONG, WIDE, Asked(2.0, 98.0, 1)]
    assert starts([4], jobs, "easy") == [0.0, 100.0, 2.0]


def test_under_easy_a_job_does_not_pass_that_would_delay_the_first() -> None:
    jobs = [LONG, WIDE, Asked(2.0, 98.5, 1)]
    assert starts([4], jobs, "easy") == [0.0, 100.0, 200.0]


def test_a_job_passes_on_cpus_that_the_first_will_not_need_and_only_on_those() -> None:
    jobs = [LONG, WIDE, Asked(2.0, 500.0, 1), Asked(3.0, 500.0, 1)]
    assert starts([5], jobs, "easy") == [0.0, 100.0, 2.0, 200.0]


def test_who_passes_is_tried_in_the_order_of_the_policy() -> None:
    jobs = [LONG, WIDE, Asked(2.0, 90.0, 1), Asked(2.0, 80.0, 1)]
    assert starts([4], jobs, "easy", Fifo)[2:] == [2.0, 200.0]
    jobs = [LONG, WIDE._replace(run_s=10.0), Asked(2.0, 90.0, 1), Asked(2.0, 80.0, 1)]
    assert starts([4], jobs, "easy", ShortestJobFirst)[2:] == [110.0, 2.0]


def test_the_reservation_goes_by_what_is_estimated_not_by_the_truth() -> None:
    early = LONG._replace(estimate_s=500.0)  # ends at 100, though 500 is expected
    assert starts([4], [early, WIDE, Asked(2.0, 400.0, 1)], "easy") == [0.0, 402.0, 2.0]


def test_a_job_that_runs_longer_than_estimated_may_delay_the_first() -> None:
    liar = Asked(2.0, 300.0, 1, estimate_s=50.0)
    assert starts([4], [LONG, WIDE, liar], "easy") == [0.0, 302.0, 2.0]


def test_nobody_passes_once_a_run_is_past_its_estimate() -> None:
    late = LONG._replace(estimate_s=50.0)
    jobs = [late, WIDE, Asked(60.0, 10.0, 1)]
    assert starts([4], jobs, "easy") == [0.0, 100.0, 200.0]


def test_a_job_of_unknown_length_passes_only_on_spare_cpus() -> None:
    unknown = Asked(2.0, 10.0, 1, estimate_s=nan)
    assert starts([4], [LONG, WIDE, unknown], "easy") == [0.0, 100.0, 200.0]
    assert starts([5], [LONG, WIDE, unknown], "easy") == [0.0, 100.0, 2.0]


def test_nobody_passes_where_the_end_of_what_runs_is_unknown() -> None:
    unknown = LONG._replace(estimate_s=nan)
    jobs = [unknown, WIDE, Asked(2.0, 10.0, 1)]
    assert starts([4], jobs, "easy") == [0.0, 100.0, 200.0]


def test_a_machine_that_is_too_narrow_for_the_first_is_free_for_others() -> None:
    jobs = [LONG, WIDE, Asked(2.0, 500.0, 2), Asked(3.0, 500.0, 2)]
    assert starts([4, 2], jobs, "easy") == [0.0, 100.0, 2.0, 200.0]


def test_the_first_is_reserved_the_machine_that_frees_earliest() -> None:
    other = Asked(0.0, 50.0, 4)
    jobs = [LONG, other, WIDE, Asked(2.0, 60.0, 1)]
    assert starts([4, 4], jobs, "easy") == [0.0, 0.0, 50.0, 2.0]


# -- against an independent simulation ------------------------------------------------------------


def easy_fcfs(pool: int, jobs: Sequence[Asked]) -> list[float]:
    """When each job starts on one pool under FCFS with EASY, written down as plainly as can be."""
    started = [nan] * len(jobs)
    queue: list[int] = []
    running: list[tuple[float, int]] = []  # (true end, job)
    moments = [job.submit_s for job in jobs]
    heapq.heapify(moments)

    def estimate_s(number: int) -> float:
        told = jobs[number].estimate_s
        return jobs[number].run_s if told is None else told

    def free() -> int:
        return pool - sum(jobs[number].cpus for _, number in running)

    def start(number: int, now: float) -> None:
        started[number] = now
        queue.remove(number)
        running.append((now + jobs[number].run_s, number))
        heapq.heappush(moments, now + jobs[number].run_s)

    while moments:
        now = heapq.heappop(moments)
        while moments and moments[0] == now:
            heapq.heappop(moments)
        running[:] = [run for run in running if run[0] > now]
        queue += [n for n, job in enumerate(jobs) if job.submit_s == now]
        while queue and jobs[queue[0]].cpus <= free():
            start(queue[0], now)
        if not queue:
            continue
        spare, shadow = free(), now
        for end_s, number in sorted((started[n] + estimate_s(n), n) for _, n in running):
            spare, shadow = spare + jobs[number].cpus, max(now, end_s)
            if spare >= jobs[queue[0]].cpus:
                break
        spare -= jobs[queue[0]].cpus
        for number in queue[1:]:
            cpus = jobs[number].cpus
            in_time = now + estimate_s(number) <= shadow
            if cpus <= free() and (in_time or cpus <= spare):
                start(number, now)
                spare -= 0 if in_time else cpus
    return started


def asked(exact: bool) -> st.SearchStrategy[Asked]:
    """A job whose times often coincide with others'."""
    tens = st.integers(1, 12).map(lambda n: 10.0 * n)
    told = st.none() if exact else tens
    return st.builds(
        Asked, st.integers(0, 20).map(lambda n: 5.0 * n), tens, st.integers(1, 8), told
    )


@pytest.mark.parametrize("exact", [True, False], ids=["true estimates", "wrong estimates"])
@settings(max_examples=60, deadline=None)
@given(data=st.data())
def test_fcfs_with_easy_is_what_an_independent_simulation_gives(
    exact: bool, data: st.DataObject
) -> None:
    jobs = data.draw(st.lists(asked(exact), min_size=1, max_size=16))
    jobs.sort(key=lambda job: job.submit_s)
    assert starts([8], jobs, "easy") == easy_fcfs(8, jobs)


@settings(max_examples=40, deadline=None)
@given(
    jobs=st.lists(asked(exact=False), min_size=1, max_size=14),
    kind=st.sampled_from(ORDERS),
    backfill=st.sampled_from(["none", "easy"]),
)
def test_every_job_runs_once_and_no_cpu_is_given_twice(
    jobs: list[Asked], kind: type[Policy], backfill: str
) -> None:
    jobs.sort(key=lambda job: job.submit_s)
    at_s = starts([8], jobs, backfill, kind)
    for job, start_s in zip(jobs, at_s, strict=True):
        assert start_s >= job.submit_s
        together = sum(
            other.cpus
            for other, other_s in zip(jobs, at_s, strict=True)
            if other_s <= start_s < other_s + other.run_s
        )
        assert together <= 8
