"""Days of a canary trial: drawn, balanced, by the site's wall clock."""

import datetime as dt
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from outrider.model.jobs import QUEUED, RUNNING, Job, JobSpec
from outrider.service.canary_trial.trial import (
    RUNS_OUT_S,
    TrialTally,
    draw_days,
    midnights,
    pairs_of,
)
from tests.service.canary_trial.trials import DAY_S, SUNDAY_S, at, trial


@pytest.mark.parametrize("seed", range(20))
def test_of_each_pair_of_days_one_acts_and_each_week_has_three_or_four(seed: int) -> None:
    acts = draw_days(seed, 28)
    assert len(acts) == 28
    assert all(acts[a] != acts[b] for a, b in pairs_of(28))
    assert all(sum(acts[week : week + 7]) in (3, 4) for week in range(0, 28, 7))


def test_a_pair_is_the_same_weekday_of_two_weeks_and_no_day_is_in_two() -> None:
    pairs = pairs_of(42)
    assert all(b - a == 7 for a, b in pairs)
    assert sorted(day for pair in pairs for day in pair) == list(range(42))


def test_the_seed_alone_says_which_days_act_and_each_day_acts_under_half_of_the_seeds() -> None:
    assert draw_days(3, 14) == draw_days(3, 14)
    drawn = [draw_days(seed, 14) for seed in range(400)]
    assert all(160 < sum(acts[day] for acts in drawn) < 240 for day in range(14))


def test_days_begin_at_midnight_where_the_site_is_also_when_its_clocks_change() -> None:
    berlin = ZoneInfo("Europe/Berlin")
    friday_s = dt.datetime(2026, 3, 27, 9, tzinfo=berlin).timestamp()
    found = midnights(friday_s, 3, berlin)
    assert [dt.datetime.fromtimestamp(t, berlin).isoformat() for t in found] == [
        "2026-03-28T00:00:00+01:00", "2026-03-29T00:00:00+01:00", "2026-03-30T00:00:00+02:00",
        "2026-03-31T00:00:00+02:00",
    ]  # fmt: skip


def test_nothing_acts_before_the_first_day_nor_after_the_last() -> None:
    made = trial()
    assert not made.acts_at(SUNDAY_S)
    assert not made.acts_at(made.midnights_s[0] - 1.0)
    assert not made.acts_at(made.midnights_s[-1])
    assert made.ends_s == made.midnights_s[-1] + RUNS_OUT_S
    assert [made.acts_at(at(made, day)) for day in range(28)] == list(made.acts)


def test_what_begins_just_after_a_change_counts_for_no_day() -> None:
    made = trial(washout_s=3_600.0)
    before = (False, *made.acts)
    for day, acts in enumerate(made.acts):
        changed = acts != before[day]
        assert made.counts_for(at(made, day, 0.5)) == (None if changed else day)
        assert made.counts_for(at(made, day, 1.0)) == day
        assert made.counts_for(at(made, day, 23.9)) == day


def test_it_says_when_acting_next_begins_or_ends() -> None:
    made = trial()
    now_s, acts = SUNDAY_S, False
    changes = 0
    while (change_s := made.next_change_s(now_s)) is not None:
        assert change_s > now_s
        assert made.acts_at(change_s) != acts == made.acts_at(change_s - 1.0)
        now_s, acts, changes = change_s, not acts, changes + 1
    assert changes >= 8
    assert not acts


def run(number: int, submit_s: float | None, start_s: float, **spec: Any) -> Job:
    """Return a job in its first run."""
    return Job(number, JobSpec(**spec), submit_s, start_s=start_s, state=RUNNING, runs=1)


def test_a_run_counts_for_the_day_in_which_its_job_began_to_wait_for_it() -> None:
    made = trial()
    tally = TrialTally(made)
    tally.run_ended(run(1, at(made, 2), at(made, 3)), 7_200.0, 10.0, at(made, 9), completes=True)
    job = run(2, at(made, 2, 23.0), at(made, 2, 23.5))
    tally.run_ended(job, 108_000.0, 5.0, at(made, 4), completes=False)
    job.start_s, job.runs = at(made, 5), 2  # deferred over midnight, and let go
    tally.run_ended(job, 1.0, 1.0, at(made, 6), completes=True)
    later = run(3, at(made, 0), at(made, 8), eligible_s=at(made, 7))
    tally.run_ended(later, 1.0, 1.0, at(made, 8), completes=True)
    unseen = run(4, None, at(made, 10))
    tally.run_ended(unseen, 1.0, 1.0, at(made, 11), completes=True)
    tally.run_ended(run(5, SUNDAY_S, at(made, 1)), 1.0, 1.0, at(made, 1), completes=True)
    two = tally.days[2]
    assert (two.goodput_s, two.badput_s, two.energy_j) == (7_200.0, 108_000.0, 15.0)
    assert (two.completed, two.evictions) == (1, 1)
    assert [n for n, day in enumerate(tally.days) if day.completed] == [2, 4, 7, 10]


def test_a_job_evicted_before_anybody_counted_counts_for_no_day_until_it_is_again() -> None:
    made = trial()
    tally = TrialTally(made)
    job = run(1, at(made, 1), at(made, 2))
    job.runs = 3
    tally.run_ended(job, 1.0, 1.0, at(made, 3), completes=False)
    assert sum(day.evictions for day in tally.days) == 0
    tally.run_ended(job, 1.0, 1.0, at(made, 4), completes=False)
    assert [n for n, day in enumerate(tally.days) if day.evictions] == [3]


def test_a_job_that_left_is_forgotten_waiting_or_running() -> None:
    made = trial()
    tally = TrialTally(made)
    waits, runs = run(1, at(made, 1), at(made, 1)), run(2, at(made, 1), at(made, 1))
    for job in (waits, runs):
        tally.run_ended(job, 1.0, 1.0, at(made, 2), completes=False)
    waits.state = QUEUED
    for job in (waits, runs):
        tally.job_removed(job)
    tally.run_ended(runs, 1.0, 1.0, at(made, 3), completes=False)
    assert [n for n, day in enumerate(tally.days) if day.evictions] == [1, 2]
    assert tally.save()["evicted"] == []


def test_overhead_counts_for_the_day_of_the_submission_each_up_to_a_day() -> None:
    made = trial()
    tally = TrialTally(made)
    tally.job_completed(at(made, 1), 2 * DAY_S)
    tally.job_completed(at(made, 1), -1e-9)
    assert (tally.days[1].overhead_s, tally.days[1].overheads) == (DAY_S, 2)


def test_a_tally_goes_on_from_what_was_saved_of_the_same_trial_alone() -> None:
    made = trial()
    tally = TrialTally(made)
    job = run(1, at(made, 2), at(made, 3))
    tally.run_ended(job, 7_200.0, float("nan"), at(made, 4), completes=False)
    again, other = TrialTally(made), TrialTally(trial(seed=2))
    again.restore(tally.save())
    assert again.days[2].badput_s == 7_200.0
    again.run_ended(job, 1.0, 1.0, at(made, 5), completes=True)
    assert again.days[4].completed == 1
    assert again.days[2].energy_j != again.days[2].energy_j
    other.trial = trial(seed=2, terms="x")
    other.restore({**tally.save(), "registered_s": 0.0})
    other.restore(None)
    assert all(day.completed == 0 for day in other.days)
