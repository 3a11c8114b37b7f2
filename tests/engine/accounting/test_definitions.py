"""The report against the definitions, computed again from the recorded events."""

from math import sqrt
from typing import Any

import pytest
from hypothesis import given, settings

from outrider.engine.accounting.distribution import Distribution, summary
from outrider.formats.campus.campus import Campus
from outrider.testing.hand_campus import HOUR_S, Session, Work, make_campus
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play
from tests.fixtures.truth import Run, runs_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(60), derandomize=True)
each_policy = pytest.mark.parametrize("policy", MAKERS)


def described(values: list[float], censored_n: int = 0) -> dict[str, Any]:
    """S of FORMATS, by the formulas."""
    out: dict[str, Any] = dict.fromkeys(("mean", "std", "median", "p90", "p95", "p99", "max"))
    out |= {"n": len(values), "censored_n": censored_n}
    if values:
        ranked = sorted(values)
        mean = sum(values) / len(values)
        out["mean"], out["max"] = mean, ranked[-1]
        out["std"] = sqrt(sum((v - mean) ** 2 for v in values) / len(values))
        for name, ratio in (("median", 0.5), ("p90", 0.9), ("p95", 0.95), ("p99", 0.99)):
            place = ratio * (len(ranked) - 1)
            low = int(place)
            high = min(low + 1, len(ranked) - 1)
            out[name] = ranked[low] + (ranked[high] - ranked[low]) * (place - low)
    return out


def first_starts(runs: list[Run]) -> dict[int, float]:
    first: dict[int, float] = {}
    for run in runs:
        first.setdefault(run.job, run.start_s)
    return first


@each_policy
@thorough
@given(campus=campuses())
def test_waits_are_from_submission_to_the_first_start(policy: str, campus: Campus) -> None:
    play = Play(campus, [MAKERS[policy]()])
    first = first_starts(runs_of(play.told, campus.span_s))
    waits = {job: first[job] - campus.submit_s[job] for job in first}
    every = range(len(campus.job_names))
    never = [job for job in every if job not in first]
    told = play.report["wait_s"]
    assert told["all"] == pytest.approx(described(list(waits.values()), len(never)), abs=1e-6)
    vos = {campus.vo_names[campus.vo[job]] for job in every}
    assert set(told["by_vo"]) == vos
    for vo in vos:
        of_vo = {job for job in every if campus.vo_names[campus.vo[job]] == vo}
        expected = described(
            [w for job, w in waits.items() if job in of_vo], len(of_vo & set(never))
        )
        assert told["by_vo"][vo] == pytest.approx(expected, abs=1e-6)


@each_policy
@thorough
@given(campus=campuses())
def test_overhead_counts_jobs_still_unfinished_but_none_without_a_run_time(
    policy: str, campus: Campus
) -> None:
    play = Play(campus, [MAKERS[policy]()])
    done = {r.job: r.end_s for r in runs_of(play.told, campus.span_s) if r.ending == "completed"}
    overheads = []
    for job, run_s in enumerate(campus.run_s):
        if run_s != run_s or (job not in done and campus.kill_s[job] <= campus.span_s):
            continue
        end_s = done.get(job, campus.span_s)
        overheads.append(max(0.0, float(end_s - campus.submit_s[job] - run_s)))
    assert play.report["overhead_s"]["all"] == pytest.approx(described(overheads), abs=1e-6)


@each_policy
@thorough
@given(campus=campuses())
def test_slowdown_is_bounded_by_ten_seconds_and_counts_jobs_that_completed(
    policy: str, campus: Campus
) -> None:
    play = Play(campus, [MAKERS[policy]()])
    runs = runs_of(play.told, campus.span_s)
    first = first_starts(runs)
    slowdowns = []
    for run in runs:
        if run.ending == "completed":
            wait_s = first[run.job] - campus.submit_s[run.job]
            ran_s = campus.run_s[run.job]
            slowdowns.append(max(1.0, float((wait_s + ran_s) / max(ran_s, 10.0))))
    expected = described(slowdowns)
    assert play.report["bounded_slowdown"]["all"] == pytest.approx(expected, abs=1e-6)


@each_policy
@thorough
@given(campus=campuses())
def test_goodput_badput_and_evictions_by_reason(policy: str, campus: Campus) -> None:
    play = Play(campus, [MAKERS[policy]()])
    good_s = bad_s = 0.0
    reasons: dict[str, int] = {}
    for run in runs_of(play.told, campus.span_s):
        if run.ending == "completed":
            good_s += run.end_s - run.start_s
        elif run.ending != "open":
            bad_s += run.end_s - run.start_s
            reason = "killed" if run.ending == "removed" else run.ending
            reasons[reason] = reasons.get(reason, 0) + 1
    report = play.report
    assert report["goodput_s"] == pytest.approx(good_s)
    assert report["badput_s"] == pytest.approx(bad_s)
    assert {reason: n for reason, n in report["evictions"].items() if n} == reasons


@each_policy
@thorough
@given(campus=campuses())
def test_the_longest_deferral_is_the_longest_stretch_of_chosen_waiting(
    policy: str, campus: Campus
) -> None:
    """Recomputed from the rows: a deferral begins with a choice, and ends with what follows."""
    play = Play(campus, [MAKERS[policy]()])
    longest = 0.0
    for job in set(campus.job_names):
        since, held_s = None, 0.0
        number = campus.job_names.index(job)
        ends = [(t, 0, "run") for t, kind, subject, _ in play.told
                if kind in (7, 9) and subject == number]  # fmt: skip
        rows = [(row.time_s, 1 if row.action == "start" else 2, row.reason)
                for row in play.rows if row.job == job]  # fmt: skip
        for time_s, order, reason in sorted(rows + ends, key=lambda entry: entry[0]):
            chosen = order == 2 and reason == "hold"
            if chosen and since is None:
                since = time_s
            elif not chosen and since is not None:
                held_s, since = held_s + time_s - since, None
            longest = max(longest, held_s)
            if order == 0:
                held_s = 0.0
        if since is not None:
            longest = max(longest, held_s + campus.span_s - since)
    assert play.report["defer_s"]["max"] == pytest.approx(longest)


def test_a_report_is_made_before_anything_was_delivered() -> None:
    """The first moments of a site: a job has started and no second of it has passed."""
    campus = make_campus([0], [Work(100.0, 60.0)])
    report = Play(campus, [MAKERS["fifo"]()]).report
    assert report["starts"] == 1
    assert report["fairness"]["share"] == {"all": None}


def test_a_killed_job_with_a_run_time_is_removed_and_has_no_overhead() -> None:
    campus = make_campus([0], [Work(0.0, 9 * HOUR_S, HOUR_S)], [Session(0, 2 * HOUR_S, 3 * HOUR_S)])
    report = Play(campus, [MAKERS["fifo"]()]).report
    assert report["jobs"]["removed"] == 1
    assert report["overhead_s"]["all"]["n"] == 0


def test_percentiles_of_several_distributions_are_those_of_all_their_values() -> None:
    one, two = Distribution(True), Distribution(True)
    for value in (1.0, 5.0):
        one.add(value)
    two.add(10.0)
    assert summary([one, two], 2) == pytest.approx(described([1.0, 5.0, 10.0], 2))
