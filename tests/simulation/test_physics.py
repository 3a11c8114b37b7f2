"""Places and times of jobs, against a model of the campus that scans the whole trace."""

import itertools

import pytest
from hypothesis import given, settings

from outrider.formats.campus.campus import Campus
from outrider.model.events import SUBMITTED
from outrider.testing.hand_campus import HOUR_S, Rules, Session, Work, make_campus
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play
from tests.fixtures.truth import Run, Truth, runs_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(60), derandomize=True)
each_policy = pytest.mark.parametrize("policy", MAKERS)


@each_policy
@thorough
@given(campus=campuses())
def test_every_run_of_a_campus_is_as_its_rules_have_it(policy: str, campus: Campus) -> None:
    """One play of each campus is judged by every rule."""
    play, truth = Play(campus, [MAKERS[policy]()]), Truth(campus)
    runs = runs_of(play.told, campus.span_s)  # refuses a job that runs twice at once
    jobs_start_only_where_the_owner_is_away_and_the_delay_has_passed(runs, truth)
    a_machine_takes_one_job(runs, campus)
    runs_end_exactly_at_their_end_the_log_in_the_reboot_or_the_kill(runs, truth, campus)
    no_job_is_lost_and_every_start_has_an_end(runs, play, campus)


def jobs_start_only_where_the_owner_is_away_and_the_delay_has_passed(
    runs: list[Run], truth: Truth
) -> None:
    for run in runs:
        assert truth.may_start(run.machine, run.start_s), run


def a_machine_takes_one_job(runs: list[Run], campus: Campus) -> None:
    for machine in range(len(campus.machine_names)):
        there = [run for run in runs if run.machine == machine]
        there.sort(key=lambda run: (run.start_s, run.end_s))  # a run of no length comes first
        for earlier, later in itertools.pairwise(there):
            assert earlier.end_s <= later.start_s, (earlier, later)


def runs_end_exactly_at_their_end_the_log_in_the_reboot_or_the_kill(
    runs: list[Run], truth: Truth, campus: Campus
) -> None:
    for run in runs:
        end_s, ending = truth.expected_end(run.job, run.machine, run.start_s)
        if end_s > campus.span_s:
            end_s, ending = campus.span_s, "open"
        assert (run.end_s, run.ending) == (end_s, ending), run


def no_job_is_lost_and_every_start_has_an_end(runs: list[Run], play: Play, campus: Campus) -> None:
    jobs, report = play.report["jobs"], play.report
    assert jobs["submitted"] == len(campus.job_names)
    assert jobs["submitted"] == sum(1 for event in play.told if event[1] == SUBMITTED)
    assert jobs["submitted"] == jobs["completed"] + jobs["removed"] + jobs["unfinished"]
    running = sum(1 for run in runs if run.ending == "open")
    assert report["starts"] == jobs["completed"] + sum(report["evictions"].values()) + running


@pytest.mark.parametrize("policy", ["fifo", "random_match", "lowest_watts"])
@thorough
@given(campus=campuses())
def test_under_a_policy_that_never_keeps_no_machine_stands_open_while_a_job_waits(
    policy: str, campus: Campus
) -> None:
    play, truth = Play(campus, [MAKERS[policy]()]), Truth(campus)
    runs = runs_of(play.told, campus.span_s)
    moments = sorted({event[0] for event in play.told if event[0] <= campus.span_s})
    for time_s in moments:
        running = {r.job for r in runs if r.start_s <= time_s < r.end_s or (r.ending == "open"
                   and r.start_s <= time_s)}  # fmt: skip
        busy = {r.machine for r in runs if r.job in running and r.start_s <= time_s
                and (time_s < r.end_s or r.ending == "open")}  # fmt: skip
        gone = {r.job for r in runs if r.ending in ("completed", "removed") and r.end_s <= time_s}
        waiting = [
            job
            for job in range(len(campus.job_names))
            if campus.submit_s[job] <= time_s and job not in running | gone
            and not campus.kill_s[job] <= time_s
        ]  # fmt: skip
        open_here = [
            m
            for m in range(len(campus.machine_names))
            if m not in busy and truth.may_start(m, time_s)
        ]
        assert not (waiting and open_here), (time_s, waiting, open_here)


def test_a_visit_of_no_length_closes_the_machine_only_for_the_idle_delay() -> None:
    """An owner who logs in and out within the same second has gone again."""
    campus = make_campus(
        [0], [Work(7200.0, 60.0)], [Session(0, 3600.0, 3600.0)], Rules(idle_open_s=900.0),
        end_s=10 * HOUR_S,
    )  # fmt: skip
    play = Play(campus, [MAKERS["fifo"]()])
    starts = [(row.time_s, row.machine) for row in play.rows if row.action == "start"]
    assert starts == [(7200.0, "m0")]


def test_a_reboot_spares_machines_with_an_owner_and_evicts_the_rest() -> None:
    campus = make_campus(
        [0, 0], [Work(0.0, 8 * HOUR_S)], [Session(0, 0.0, 5 * HOUR_S)],
        Rules(reboot_s=3 * HOUR_S, idle_open_s=900.0), end_s=20 * HOUR_S,
    )  # fmt: skip
    play = Play(campus, [MAKERS["fifo"]()])
    assert runs_of(play.told, campus.span_s) == [
        (0, 1, 0.0, 3 * HOUR_S, "reboot"),
        (0, 1, 3 * HOUR_S + 900.0, 11 * HOUR_S + 900.0, "completed"),
    ]


def test_a_log_in_at_the_second_of_the_reboot_is_an_eviction_by_the_reboot() -> None:
    night_s = 3 * HOUR_S
    campus = make_campus(
        [0], [Work(0.0, 8 * HOUR_S)], [Session(0, night_s, night_s + 600)],
        Rules(reboot_s=night_s), end_s=4 * HOUR_S,
    )  # fmt: skip
    play = Play(campus, [MAKERS["fifo"]()])
    assert play.report["evictions"]["reboot"] == 1
    assert play.report["evictions"]["owner"] == 0
