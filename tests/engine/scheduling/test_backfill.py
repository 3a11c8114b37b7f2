"""Backfill: who may pass the first in the queue when it does not fit, and who may not."""

from collections.abc import Sequence
from math import nan

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.api import Policy
from outrider.model.modes import DISCIPLINES, Discipline
from outrider.testing.fixtures import Asked, make_workload, started_at
from outrider_policies.rules.orders import F1, EarliestDeadlineFirst, ShortestJobFirst, Unicep, Wfp3
from outrider_policies.rules.placements import Fifo
from tests.suite.examples import examples

ORDERS = [Fifo, ShortestJobFirst, EarliestDeadlineFirst, Wfp3, Unicep, F1]

LONG = Asked(0.0, 100.0, 3)
WIDE = Asked(1.0, 100.0, 4)


def starts(
    machines: Sequence[int],
    jobs: Sequence[Asked],
    discipline: Discipline,
    kind: type[Policy] = Fifo,
) -> list[float]:
    """Return when each started, in the order of the jobs."""
    found = started_at(make_workload(machines, jobs), kind, discipline)
    return [found[f"j{number}"] for number in range(len(jobs))]


@pytest.mark.parametrize("kind", ORDERS)
def test_without_backfill_nobody_passes_the_first_in_line(kind: type[Policy]) -> None:
    jobs = [LONG, WIDE, Asked(2.0, 1000.0, 1)]
    assert starts([4], jobs, "strict", kind) == [0.0, 100.0, 200.0]


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


def asked() -> st.SearchStrategy[Asked]:
    """A job whose times often coincide with others'."""
    tens = st.integers(1, 12).map(lambda n: 10.0 * n)
    moments = st.integers(0, 20).map(lambda n: 5.0 * n)
    return st.builds(Asked, moments, tens, st.integers(1, 8), tens)


def test_all_that_ends_at_the_moment_of_the_start_is_counted() -> None:
    jobs = [
        Asked(0.0, 100.0, 3), Asked(0.0, 100.0, 3), Asked(1.0, 10.0, 4), Asked(2.0, 500.0, 2),
    ]  # fmt: skip
    assert starts([8], jobs, "easy") == [0.0, 0.0, 100.0, 2.0], "2 of 8 CPUs are to spare at 100 s"


def test_runs_that_are_overdue_are_counted_as_if_they_ended_now() -> None:
    late = Asked(0.0, 200.0, 3, estimate_s=50.0)
    jobs = [late, late, Asked(60.0, 10.0, 4), Asked(61.0, 500.0, 2)]
    assert starts([8], jobs, "easy") == [0.0, 0.0, 200.0, 61.0]


def test_conservative_lets_nobody_delay_the_second_in_line_where_easy_does() -> None:
    jobs = [
        Asked(0.0, 100.0, 3), Asked(1.0, 50.0, 4), Asked(2.0, 50.0, 3), Asked(3.0, 140.0, 1),
    ]  # fmt: skip
    assert starts([4], jobs, "conservative") == [0.0, 100.0, 150.0, 150.0]
    assert starts([4], [*jobs[:3], Asked(3.0, 90.0, 1)], "conservative")[3] == 3.0


@settings(max_examples=examples(40))
@given(
    jobs=st.lists(asked(), min_size=1, max_size=14),
    kind=st.sampled_from(ORDERS),
    discipline=st.sampled_from(DISCIPLINES),
)
def test_every_job_runs_once_and_no_cpu_is_given_twice(
    jobs: list[Asked], kind: type[Policy], discipline: Discipline
) -> None:
    jobs.sort(key=lambda job: job.submit_s)
    at_s = starts([8], jobs, discipline, kind)
    for job, start_s in zip(jobs, at_s, strict=True):
        assert start_s >= job.submit_s
        together = sum(
            other.cpus
            for other, other_s in zip(jobs, at_s, strict=True)
            if other_s <= start_s < other_s + other.run_s
        )
        assert together <= 8
