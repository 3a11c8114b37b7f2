"""Leases that are active, renewed, reverted and expired, by a clock that the test moves."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.acting.leases import MAX_BATCH, Due, LeaseBounds, Leases
from tests.acting.levers import row
from tests.suite.examples import examples

LEASE_S = 90.0


def applied_at(leases: Leases, now_s: float) -> list[str]:
    """Return the jobs that are due, and apply them immediately."""
    due = leases.due(now_s)
    leases.applied(due.apply, now_s)
    return [decision.job for decision in due.apply]


def test_a_decision_is_carried_out_once_and_renewed_after_a_third_of_its_lease() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    assert leases.standing(0.0) == {}
    assert applied_at(leases, 0.0) == ["1"]
    assert leases.standing(89.9) == {"1": row("1")}
    assert leases.standing(90.0) == {}, "nobody renewed it"
    assert applied_at(leases, 29.0) == []
    assert applied_at(leases, 30.0) == ["1"]
    assert applied_at(leases, 59.0) == []
    assert applied_at(leases, 60.0) == ["1"]


def test_another_decision_takes_the_place_of_the_one_before_at_once() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    applied_at(leases, 0.0)
    leases.want(row("1", "defer"), 1.0)
    due = leases.due(1.0)
    assert [decision.action for decision in due.apply] == ["defer"]
    assert due.withdraw == []


def test_an_active_deferral_is_known_with_the_time_that_it_may_last_yet() -> None:
    leases = Leases(LEASE_S, LeaseBounds(longest_deferral_s=900.0))
    leases.want(row("1", "defer"), 0.0)
    leases.want(row("2"), 0.0)
    assert leases.kept(0.0) == {}, "not applied yet"
    applied_at(leases, 10.0)
    assert leases.kept(60.0) == {"1": (row("1", "defer"), 840.0)}
    assert leases.kept(100.0) == {}, "nobody renewed it"


def test_what_is_not_wanted_any_more_is_taken_back_if_it_was_ever_carried_out() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    leases.want(row("2"), 0.0)
    leases.give_back("2")
    assert applied_at(leases, 0.0) == ["1"]
    leases.give_back("1")
    leases.give_back("unheard of")
    assert leases.due(1.0) == Due([], ["1"])
    leases.withdrawn(["1"])
    assert leases.due(2.0) == Due([], [])


def test_a_job_that_runs_is_left_alone() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    applied_at(leases, 0.0)
    leases.forget("1")
    assert leases.due(200.0) == Due([], [])
    assert leases.end() == []


def test_what_was_given_back_while_it_was_carried_out_is_taken_back() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    due = leases.due(0.0)
    leases.give_back("1")
    leases.applied(due.apply, 0.0)
    assert leases.due(1.0) == Due([], ["1"])


def test_a_decision_that_came_while_another_was_carried_out_is_still_due() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    due = leases.due(0.0)
    leases.want(row("1", "defer"), 0.5)
    leases.applied(due.apply, 0.0)
    assert [decision.action for decision in leases.due(1.0).apply] == ["defer"]
    leases.give_back("1")
    assert leases.due(2.0).withdraw == ["1"], "the first one stands"


def test_what_is_refused_is_not_asked_for_again_until_it_is_decided_anew() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    leases.due(0.0)
    leases.refused(["1"])
    assert leases.due(500.0) == Due([], [])
    leases.want(row("1"), 501.0)
    assert applied_at(leases, 501.0) == ["1"]


def test_where_a_change_is_refused_what_stood_before_is_taken_back() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1", "defer"), 0.0)
    applied_at(leases, 0.0)
    leases.want(row("1"), 1.0)
    leases.due(1.0)
    leases.refused(["1"])
    assert leases.due(2.0) == Due([], ["1"])


def test_where_nobody_answers_it_is_tried_again_later_and_may_have_been_done() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    leases.want(row("1"), 0.0)
    leases.failed(leases.due(0.0).apply, 0.0, 5.0)
    assert leases.due(4.9).apply == []
    assert applied_at(leases, 5.0) == ["1"]
    leases.want(row("2"), 6.0)
    leases.failed(leases.due(6.0).apply, 6.0, 5.0)
    leases.give_back("2")
    assert leases.due(7.0).withdraw == ["2"]


def test_on_stale_input_nothing_is_carried_out_or_renewed_but_given_back() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    for job in ("1", "2"):
        leases.want(row(job), 0.0)
    applied_at(leases, 0.0)
    leases.want(row("3"), 1.0)
    leases.give_back("2")
    assert leases.due(80.0, is_fresh=False) == Due([], ["2"])
    assert sorted(d.job for d in leases.due(81.0).apply) == ["1", "3"]


def test_at_most_so_many_jobs_are_kept_in_the_queue_at_once() -> None:
    leases = Leases(LEASE_S, LeaseBounds(deferred_at_once=2))
    for job in ("1", "2", "3"):
        leases.want(row(job, "defer"), 0.0)
    assert applied_at(leases, 0.0) == ["1", "2"]
    leases.want(row("2", "defer"), 1.0)  # the same one again takes no other place
    leases.want(row("4"), 1.0)  # no deferral
    assert applied_at(leases, 1.0) == ["2", "4"]
    leases.forget("1")
    leases.want(row("3", "defer"), 2.0)
    assert applied_at(leases, 2.0) == ["3"]
    assert leases.counts == {"too_many": 1}


def test_a_bound_that_is_no_whole_number_bounds_all_the_same() -> None:
    leases = Leases(LEASE_S, LeaseBounds(deferred_at_once=1.5))
    for job in ("1", "2", "3"):
        leases.want(row(job, "defer"), 0.0)
    assert applied_at(leases, 0.0) == ["1", "2"]


def test_a_deferral_too_many_ends_what_stood_for_its_job() -> None:
    leases = Leases(LEASE_S, LeaseBounds(deferred_at_once=0))
    leases.want(row("1"), 0.0)
    applied_at(leases, 0.0)
    leases.want(row("1", "defer"), 1.0)
    assert leases.due(1.0) == Due([], ["1"])


def test_no_job_is_kept_in_the_queue_for_longer_than_may_be() -> None:
    leases = Leases(LEASE_S, LeaseBounds(longest_deferral_s=100.0))
    leases.want(row("1", "defer"), 0.0)
    applied_at(leases, 0.0)
    leases.want(row("1"), 50.0)
    applied_at(leases, 50.0)
    leases.want(row("1", "defer"), 60.0)  # what it waited before counts
    assert applied_at(leases, 60.0) == ["1"]
    assert leases.due(100.0) == Due([], ["1"])
    leases.withdrawn(["1"])
    leases.want(row("1", "defer"), 100.0)
    assert leases.due(100.0) == Due([], [])
    assert leases.counts == {"too_long": 2}


def test_one_kept_too_long_is_given_back_also_where_nobody_looked_at_that_very_moment() -> None:
    leases = Leases(LEASE_S, LeaseBounds(longest_deferral_s=100.0))
    leases.want(row("1", "defer"), 0.0)
    applied_at(leases, 0.0)
    leases.want(row("2", "defer"), 7.0)
    applied_at(leases, 7.0)
    assert leases.due(103.5).withdraw == ["1"]
    assert leases.counts == {"too_long": 1}
    leases.forget("1")  # it ran, and was evicted
    leases.want(row("1", "defer"), 200.0)
    assert applied_at(leases, 200.0) == ["1"]


def test_what_is_taken_back_counts_too() -> None:
    leases = Leases(LEASE_S, LeaseBounds(acts_per_minute=3))
    for job in ("1", "2"):
        leases.want(row(job), 0.0)
    applied_at(leases, 0.0)
    for job in ("1", "2"):
        leases.give_back(job)
    for job in ("3", "4"):
        leases.want(row(job), 61.0)
    due = leases.due(61.0)
    assert (len(due.withdraw), len(due.apply)) == (2, 1)


def test_a_failure_is_noted_of_every_job_also_behind_one_that_was_given_back() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    for job in ("1", "2"):
        leases.want(row(job), 0.0)
    tried = leases.due(0.0).apply
    leases.give_back("1")
    leases.failed(tried, 0.0, 5.0)
    assert leases.due(1.0).apply == []
    assert leases.standing(1.0).keys() == {"2"}


def test_the_budget_is_of_sixty_seconds() -> None:
    leases = Leases(LEASE_S, LeaseBounds(acts_per_minute=1))
    for job in ("1", "2"):
        leases.want(row(job), 0.0)
    assert [len(applied_at(leases, at_s)) for at_s in (0.0, 59.5, 60.0)] == [1, 0, 1]


@settings(max_examples=examples(100), derandomize=True)
@given(
    most=st.integers(1, 40),
    steps=st.lists(st.tuples(st.integers(0, 20), st.sampled_from([0.5, 7.0, 30.0])), max_size=40),
)
def test_no_minute_sees_more_changes_than_its_budget_and_none_is_lost(
    most: int, steps: list[tuple[int, float]]
) -> None:
    leases = Leases(1e6, LeaseBounds(acts_per_minute=most))
    now_s, jobs, acts = 0.0, 0, list[tuple[float, int]]()
    for new, gap_s in [*steps, *[(0, 30.0)] * 2000]:
        for _ in range(new):
            leases.want(row(str(jobs)), now_s)
            jobs += 1
        acts.append((now_s, len(applied_at(leases, now_s))))
        now_s += gap_s
        if sum(n for _, n in acts) == jobs:
            break
    assert sum(n for _, n in acts) == jobs
    for last_s, _ in acts:
        assert sum(n for at_s, n in acts if last_s - 60.0 < at_s <= last_s) <= most


def test_a_call_is_short_enough_to_be_stopped_after_it() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    for n in range(2 * MAX_BATCH + 1):
        leases.want(row(str(n)), 0.0)
    calls = [applied_at(leases, 0.0) for _ in range(4)]
    assert [len(jobs) for jobs in calls] == [MAX_BATCH, MAX_BATCH, 1, 0]
    assert not any(set(one) & set(other) for one, other in pairwise(calls))


def test_at_the_end_everything_that_may_stand_is_named_once() -> None:
    leases = Leases(LEASE_S, LeaseBounds())
    for job in ("1", "2", "3"):
        leases.want(row(job), 0.0)
    applied_at(leases, 0.0)
    leases.give_back("2")
    leases.want(row("4"), 1.0)
    assert sorted(leases.end()) == ["1", "2", "3"]
    assert leases.due(100.0) == Due([], [])
