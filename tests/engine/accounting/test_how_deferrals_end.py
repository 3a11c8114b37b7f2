"""Jobs deferred by choice, against the truth in a replay and against what is seen live."""

import numpy as np
import pytest

from outrider.engine.accounting.deferrals import judge
from outrider.model import events as ev
from outrider.testing.fixtures import HandSite
from outrider.testing.hand_campus import HOUR_S, Session, Work, make_campus
from tests.engine.accounting.forecasters import Deferring, deferring
from tests.fixtures.plays import MAKERS, Play

DAY_S = 86_400.0


def test_good_and_bad_jobs_that_were_deferred_are_counted_and_the_hours_of_the_good_ones() -> None:
    jobs = [
        Work(0.0, 600.0, vo="now"),
        Work(0.0, 600.0, vo="three"),  # good, deferred 3 h
        Work(60.0, 900.0, vo="seven"),  # good, deferred 7 h
        Work(60.0, None, 20 * HOUR_S, vo="seven"),  # bad, deferred 7 h, then killed as it runs
        Work(90.0, None, 2 * HOUR_S, vo="seven"),  # bad, killed while it was deferred
        Work(120.0, None, 9 * HOUR_S, vo="now"),  # bad, never deferred
    ]
    campus = make_campus([0] * 6, jobs, end_s=DAY_S)
    report = Play(campus, [deferring(three=3, seven=7)]).report
    assert report["jobs"]["completed"] == 3
    delay = report["deferrals"].pop("good_delay_h")
    assert report["deferrals"] == {
        "deferred": 4,
        "deferred_bad": 2,
        "deferred_good": 2,
        "bad": 3,
        "good": 3,
        "precision": pytest.approx(2 / 4),
        "recall": pytest.approx(2 / 3),
    }
    assert delay == pytest.approx({"sum": 10.0, "mean": 5.0, "p95": 6.8, "max": 7.0})


def test_a_policy_that_defers_nobody_deferred_nobody() -> None:
    jobs = [Work(0.0, 600.0), Work(0.0, None, HOUR_S)]
    campus = make_campus(
        [0], jobs, end_s=DAY_S
    )  # one machine: the second waits, which is no deferral
    assert Play(campus, [MAKERS["fifo"]()]).report["deferrals"] == {
        "deferred": 0,
        "deferred_bad": 0,
        "deferred_good": 0,
        "bad": 1,
        "good": 1,
        "precision": None,
        "recall": 0.0,
        "good_delay_h": {"sum": 0.0, "mean": None, "p95": None, "max": None},
    }


def test_deferrals_between_two_runs_add_up() -> None:
    """Deferred 2 h, evicted after half an hour, deferred for 3 h more once the owner is gone."""
    policy = deferring()
    policy.until_s = lambda job: 2 * HOUR_S if job.runs == 0 else 5.5 * HOUR_S
    stay = Session(0, 2.5 * HOUR_S, 2.6 * HOUR_S)
    campus = make_campus([0], [Work(0.0, 2 * HOUR_S)], [stay], end_s=DAY_S)
    report = Play(campus, [policy]).report
    assert report["evictions"]["owner"] == 1
    assert report["deferrals"]["deferred_good"] == 1
    assert report["deferrals"]["good_delay_h"]["sum"] == pytest.approx(5.0)
    assert report["defer_s"]["max"] == pytest.approx(3 * HOUR_S)


def test_a_hold_that_goes_on_at_the_end_counts_until_then() -> None:
    campus = make_campus([0], [Work(HOUR_S, 600.0, vo="late")], end_s=6 * HOUR_S)
    holds = Play(campus, [deferring(late=100)]).report["deferrals"]
    assert holds["good_delay_h"]["max"] == pytest.approx(5.0)


def test_a_hold_shorter_than_a_decision_epoch_is_none() -> None:
    jobs = [Work(0.0, None, 0.9 * HOUR_S, vo="long"), Work(0.0, None, 1.1 * HOUR_S, vo="long")]
    holds = Play(make_campus([0, 0], jobs, end_s=DAY_S), [deferring(long=5)]).report["deferrals"]
    assert (holds["deferred"], holds["bad"], holds["recall"]) == (1, 2, 0.5)


def test_jobs_submitted_after_the_end_are_neither_bad_nor_good() -> None:
    jobs = [Work(0.0, 600.0), Work(2 * HOUR_S, None, 3 * HOUR_S), Work(9 * HOUR_S, None)]
    campus = make_campus([0, 0], jobs, end_s=DAY_S)
    holds = Play(campus, [MAKERS["fifo"]()], until_s=5 * HOUR_S).report["deferrals"]
    assert (holds["good"], holds["bad"]) == (1, 1)


def test_percentiles_of_delays_interpolate() -> None:
    bad = np.array([False, True, False, False])
    judged = judge({0: 3600.0, 2: 7200.0, 3: 36_000.0, 1: 1e6}, bad)
    assert judged["good_delay_h"] == pytest.approx(
        {"sum": 13.0, "mean": 13 / 3, "p95": 9.2, "max": 10.0}
    )
    assert (judged["precision"], judged["recall"]) == (0.25, 1.0)


def test_live_a_held_job_that_completes_was_good_and_one_that_is_removed_was_not() -> None:
    site = HandSite(Deferring)
    assert isinstance(site.policy, Deferring)
    site.policy.until_s = lambda job: 4 * HOUR_S
    site.machines(1, 1, 1)
    for job in range(3):
        site.submit(job)
    site.tick()
    site.tick(HOUR_S)
    site.tell(ev.REMOVED, 0, "removed")  # deferred 1 h
    for _ in range(3):
        site.tick(HOUR_S)
    assert [job for job, _ in site.starts] == [1, 2]
    site.complete(1)
    site.tell(ev.REMOVED, 2, "killed")  # deferred 4 h, then ended by somebody
    assert site.runner.deferrals.report() == {
        "jobs": {"completed": 1, "removed": 2},
        "defer_s": {"completed": 4 * HOUR_S, "removed": 5 * HOUR_S},
    }


def test_in_shadow_a_deferral_lasts_until_the_batch_system_starts_the_job() -> None:
    """The incumbent defers the second job for two hours, and starts the others immediately."""
    jobs = [Work(0.0, 5 * HOUR_S), Work(0.0, 600.0), Work(10.0, None, 900.0)]
    incumbent, eager = deferring(), deferring()
    incumbent.until_s = lambda job: 2 * HOUR_S if job.number == 1 else 0.0
    campus = make_campus([0, 0, 0], jobs, end_s=DAY_S)
    play = Play(campus, [incumbent, deferring(all=100), eager])
    assert play.runners[1].deferrals.report() == {
        "jobs": {"completed": 2, "removed": 1},
        "defer_s": {"completed": pytest.approx(2 * HOUR_S), "removed": 0.0},
    }
    assert play.runners[2].deferrals.report()["jobs"] == {"completed": 0, "removed": 0}


def test_in_shadow_waiting_for_a_machine_is_no_deferral() -> None:
    campus = make_campus([0], [Work(0.0, 3 * HOUR_S), Work(10.0, 600.0)], end_s=DAY_S)
    play = Play(campus, [MAKERS["fifo"](), deferring()])
    assert play.runners[1].deferrals.report()["jobs"] == {"completed": 0, "removed": 0}
