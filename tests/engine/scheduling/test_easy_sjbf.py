"""`easy_sjbf`: who passes the first in the queue is tried shortest first, and delays it no more."""

from collections.abc import Sequence
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import Policy
from outrider.model.modes import Discipline
from outrider.testing.fixtures import Asked, make_workload, started_at
from outrider_policies.rules.orders import F1, ShortestJobFirst, Wfp3
from outrider_policies.rules.placements import Fifo
from outrider_policies.rules.shares import FairShare
from tests.suite.examples import examples

CPUS = 8


def starts(
    jobs: Sequence[Asked],
    discipline: Discipline,
    machines: Sequence[int] = (CPUS,),
    kind: type[Policy] = Fifo,
) -> list[float]:
    """Return when each started, in the order of the jobs; -1: never."""
    found = started_at(make_workload(machines, jobs), kind, discipline)
    return [found.get(f"j{number}", -1.0) for number in range(len(jobs))]


def test_by_hand() -> None:
    """Four CPUs: j0 has three until 100; j1 wants all four and is promised second 100.

    One CPU is free until then, and j2 (90 s), j3 (40 s) and j4 (30 s) come at second 2 and would
    each fit in front of 100. EASY takes them as they came: j2 from 2 to 92; then 8 s are left, in
    which neither of the others ends. Both wait behind j1, which runs from 100 to 110.
    Shortest first: j4 from 2 to 32, j3 from 32 to 72; then 28 s are left, too few for j2, which
    starts at 110. The first in the queue starts at 100 under both.
    """
    jobs = [
        Asked(0.0, 100.0, 3), Asked(1.0, 10.0, 4),
        Asked(2.0, 90.0), Asked(2.0, 40.0), Asked(2.0, 30.0),
    ]  # fmt: skip
    assert starts(jobs, "easy", [4]) == [0.0, 100.0, 2.0, 110.0, 110.0]
    assert starts(jobs, "easy_sjbf", [4]) == [0.0, 100.0, 110.0, 32.0, 2.0]


def test_it_goes_by_estimates_and_one_without_comes_last() -> None:
    """Two CPUs are spare beside the reservation; each of the three ends long after it."""
    jobs = [
        Asked(0.0, 100.0, 3), Asked(1.0, 10.0, 4), Asked(2.0, 500.0, estimate_s=nan),
        Asked(2.0, 500.0, estimate_s=900.0), Asked(2.0, 700.0, estimate_s=800.0),
    ]  # fmt: skip
    assert starts(jobs, "easy_sjbf", [6]) == [0.0, 100.0, 110.0, 2.0, 2.0]
    assert starts(jobs, "easy", [6])[2:] == [2.0, 2.0, 110.0]


def test_the_first_in_the_queue_is_the_queues_and_not_the_shortest() -> None:
    """j1 is first though j2 is shorter: j2 may not take the CPUs that j1 waits for."""
    jobs = [Asked(0.0, 100.0, 3), Asked(1.0, 500.0, 4), Asked(2.0, 10.0, 4)]
    assert starts(jobs, "easy_sjbf", [4]) == [0.0, 100.0, 600.0]


def test_a_job_that_fits_on_no_machine_is_not_the_first_that_is_waited_for() -> None:
    """j1 can never run; j2 is promised 100, and of the two behind it the shorter one passes."""
    jobs = [
        Asked(0.0, 100.0, 3), Asked(1.0, 5.0, 9), Asked(2.0, 10.0, 4), Asked(3.0, 90.0),
        Asked(3.0, 80.0),
    ]  # fmt: skip
    assert starts(jobs, "easy_sjbf", [4]) == [0.0, -1.0, 100.0, 110.0, 3.0]


tens = st.integers(1, 12).map(lambda n: 10.0 * n)
jobs_to_run = st.lists(
    st.tuples(st.integers(0, 20).map(lambda n: 5.0 * n), tens, st.integers(1, CPUS), tens),
    min_size=1,
    max_size=16,
).map(sorted)


@settings(max_examples=examples(150))
@given(drawn=jobs_to_run)
def test_nobody_delays_what_the_first_was_promised(
    drawn: list[tuple[float, float, int, float]],
) -> None:
    """The first job starts by the moment that it could count on, checked from starts alone.

    Jobs end within their estimates. What a job can count on, when it becomes the first, is what
    runs then and came before it, by the estimated ends; not those that passed it.
    """
    jobs = [Asked(at, run, cpus, run + more) for at, run, cpus, more in drawn]
    at_s = starts(jobs, "easy_sjbf")
    ends = [start + job.run_s for start, job in zip(at_s, jobs, strict=True)]
    for now in sorted({job.submit_s for job in jobs} | set(ends)):
        waiting = [n for n, job in enumerate(jobs) if job.submit_s <= now < at_s[n]]
        if waiting:
            assert at_s[waiting[0]] <= promised_s(waiting[0], now, jobs, at_s)


def promised_s(first: int, now: float, jobs: Sequence[Asked], at_s: Sequence[float]) -> float:
    """Return when enough CPUs are free for a job, by the estimates, if no job passes it."""
    running = [
        n for n, job in enumerate(jobs)
        if at_s[n] <= now < at_s[n] + job.run_s and (n < first or at_s[n] < now)
    ]  # fmt: skip
    until = {n: at_s[n] + (jobs[n].estimate_s or 0.0) for n in running}
    return min(
        moment
        for moment in [now, *until.values()]
        if sum(jobs[n].cpus for n in running if until[n] > moment) + jobs[first].cpus <= CPUS
    )


@pytest.mark.parametrize("kind", [Fifo, ShortestJobFirst, Wfp3, F1, FairShare])
@settings(max_examples=examples(40))
@given(
    drawn=jobs_to_run,
    machines=st.sampled_from([(8,), (8, 4), (4, 6)]),
    estimate_s=st.sampled_from([30.0, 80.0, nan]),
)
def test_with_equal_estimates_it_is_easy(
    kind: type[Policy],
    drawn: list[tuple[float, float, int, float]],
    machines: tuple[int, ...],
    estimate_s: float,
) -> None:
    jobs = [Asked(at, run, cpus, estimate_s, vo=f"v{cpus % 2}") for at, run, cpus, _ in drawn]
    assert starts(jobs, "easy_sjbf", machines, kind) == starts(jobs, "easy", machines, kind)
