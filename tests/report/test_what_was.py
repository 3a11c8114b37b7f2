"""Figures of a window: against a count by hand, with runs cut by windows and with unknowns."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import TIMEZONE_KEY, Journal
from outrider.model import events as ev
from outrider.report.figures import Tariff
from outrider.report.html import html
from outrider.report.windows import Window
from outrider.simulation.generators.campus import generate_campus
from tests.report.journals import (
    HOUR_S,
    MONDAY_S,
    WEEK,
    at,
    job,
    machine,
    report_of,
    write,
)
from tests.twin.sites import journal_of

M1: dict[str, Any] = {
    "cluster": "lab",
    "cpus": 2,
    "active_w": 100.0,
    "idle_w": 50.0,
    "sleep_w": 5.0,
}
M2: dict[str, Any] = {
    "cluster": "hall",
    "cpus": 1,
    "active_w": 200.0,
    "idle_w": 80.0,
    "sleep_w": 8.0,
}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write four jobs: one runs at the begin, one is evicted, one fails, one runs at the end."""
    events = [
        machine("m1", **M1),
        machine("m2", **M2),
        *job("j1", "alice", -3, [(-2, "m1", 1, None)]),
        *job("j2", "bob", 0, [(1, "m2", 3, "owner"), (4, "m2", 6, None)]),
        at(3, ev.OWNER_CAME, "m2"),
        at(4 - 1e-4, ev.OWNER_WENT, "m2"),
        at(4 - 1e-4, ev.USABLE, "m2"),
        *job("j3", "alice", 10, [(10, "m1", 10 + 1 / 60, "failed_start")], cpus=2),
        at(20, ev.REMOVED, "j3", "removed"),
        *job("j4", "carol", 160, [(160, "m1", 170, None)], vo="biology"),
    ]
    return write(tmp_path / "journal.sqlite", events, last_h=171)


def test_every_figure_is_that_of_a_count_by_hand(journal: Path) -> None:
    report = report_of(journal, tariff=Tariff(0.5, "CHF", 400.0))
    was = report["was"]
    assert report["window"]["covered_s"] == WEEK.span_s
    assert was["jobs"] == {"submitted": 3, "completed": 2, "removed": 1, "unfinished_at_end": 1}
    assert was["starts"] == 4
    assert was["wait_s"]["n"] == 3
    assert was["wait_s"]["mean"] == pytest.approx(HOUR_S / 3)
    assert was["wait_s"]["censored_n"] == 0
    # j1 waited an hour, j2 took six and ran two
    assert was["overhead_s"]["mean"] == pytest.approx((1 + 4) / 2 * HOUR_S)
    assert was["goodput_h"] == pytest.approx(3 + 2)  # of j1 also what was before
    assert was["badput_h"] == pytest.approx(2 + 2 / 60)
    assert {why: n for why, n in was["evictions"].items() if n} == {"owner": 1, "failed_start": 1}
    energy = {name: of["kwh"] * 1000 for name, of in was["energy"]["by_purpose"].items()}
    assert energy["goodput"] == pytest.approx(3 * 50 + 2 * 200)
    assert energy["badput"] == pytest.approx(2 * 200 + 100 / 60)
    assert energy["open"] == pytest.approx(8 * 50)
    assert energy["owner"] == pytest.approx(200, rel=1e-3)
    assert energy["idle"] == pytest.approx(
        9 * 25 + (168 - 9 - 1 / 60) * 50 + (168 - 5) * 80, rel=1e-6
    )
    assert was["energy"]["before_begin"]["kwh"] == pytest.approx(0.1)
    drawn = 9 * 75 + 100 / 60 + (168 - 9 - 1 / 60) * 50 + 4 * 200 + 200 + 163 * 80
    assert was["energy"]["drawn"]["kwh"] * 1000 == pytest.approx(drawn, rel=1e-5)
    assert was["energy"]["drawn"]["money"] == pytest.approx(drawn / 1000 * 0.5, rel=1e-5)
    assert was["energy"]["drawn"]["co2_kg"] == pytest.approx(drawn / 1000 * 0.4, rel=1e-5)


def test_vos_get_what_was_theirs(journal: Path) -> None:
    was = report_of(journal)["was"]
    assert was["by_vo"]["physics"]["badput_h"] == pytest.approx(2 + 2 / 60)
    assert was["by_vo"]["physics"]["goodput"]["kwh"] == pytest.approx(0.55)
    assert was["by_vo"]["biology"]["completed"] == 0
    # delivered in the week itself: j1 one hour, j2 four, j3 two CPU-minutes, j4 eight
    assert was["fairness"]["share"]["biology"] == pytest.approx(8 / (8 + 5 + 2 / 60))
    assert was["fairness"]["target"] == {"biology": 0.5, "physics": 0.5}
    owed = report_of(journal, targets={"physics": 0.9, "biology": 0.1})["was"]["fairness"]
    deficit = 0.9 - (5 + 2 / 60) / (13 + 2 / 60)
    assert owed["utility"] == pytest.approx(1 - deficit / 0.9)


def test_the_window_before_has_the_job_that_came_then(journal: Path) -> None:
    before = report_of(journal)["before"]
    assert before["window"]["covered_s"] == 20 * HOUR_S
    assert before["was"]["jobs"]["submitted"] == 1
    assert before["was"]["wait_s"]["mean"] == HOUR_S
    assert before["was"]["goodput_h"] == 0
    assert before["was"]["energy"]["by_purpose"]["open"]["kwh"] == pytest.approx(0.1)


def test_the_worst_offenders_are_those_of_the_record(journal: Path) -> None:
    found = report_of(journal)["offenders"]
    assert [one["user"] for one in found["users"]] == ["bob", "alice"]
    assert found["users"][0]["badput_share"] == pytest.approx(2 / (2 + 2 / 60))
    assert [one["machine"] for one in found["machines"]] == ["m2", "m1"]
    assert found["machines"][1]["starts"] == 2
    assert [one["job"] for one in found["jobs"]] == ["j2", "j3"]
    assert found["failed_starts"] == [{"machine": "m1", "jobs_tried": 2, "jobs_failed": 1}]
    assert found["black_holes"] == []


def test_windows_that_cut_runs_add_up_and_names_add_up_to_the_accounting(tmp_path: Path) -> None:
    campus = generate_campus(7, weeks=2.2, machines=40, clusters=3, start=dt.date(2010, 2, 1))
    path = journal_of(campus, tmp_path, until_s=14 * 86_400.0)
    begin_s = dt.datetime(2010, 2, 1, tzinfo=dt.UTC).timestamp()
    edges = [begin_s, begin_s + 100 * HOUR_S, begin_s + 230 * HOUR_S]
    parts = report_of(path, Window(edges[1], edges[2]), Window(edges[0], edges[1]))
    whole = report_of(path, Window(edges[0], edges[2]), Window(edges[0] - 1.0, edges[0]))
    early, late, both = parts["before"]["was"], parts["was"], whole["was"]
    assert early["energy"]["by_purpose"]["open"]["kwh"] > 0  # runs are cut
    for name in ("goodput_h", "badput_h", "starts"):
        assert early[name] + late[name] == pytest.approx(both[name])
    drawn = [was["energy"]["drawn"]["kwh"] for was in (early, late, both)]
    assert drawn[0] + drawn[1] == pytest.approx(drawn[2])
    for by in ("by_vo", "by_class"):
        for figure in ("goodput_h", "badput_h"):
            assert sum(of[figure] for of in late[by].values()) == pytest.approx(late[figure])
        for figure in ("goodput", "badput"):
            of_runs = sum(of[figure]["kwh"] for of in late[by].values())
            assert of_runs == pytest.approx(late["energy"]["by_purpose"][figure]["kwh"])


def test_watts_that_are_unknown_are_said_and_never_zero(tmp_path: Path) -> None:
    events = [
        machine("m1", cluster="lab"),
        *job("j1", "alice", 1, [(2, "m1", 4, "owner"), (5, "m1", 6, None)]),
    ]
    report = report_of(write(tmp_path / "j.sqlite", events, 170), tariff=Tariff(0.3, "EUR", 400.0))
    energy = report["was"]["energy"]
    assert energy["drawn"] == {"kwh": None, "money": None, "co2_kg": None}
    assert energy["by_purpose"]["badput"]["kwh"] is None
    assert report["offenders"]["users"][0]["badput"]["money"] is None
    assert report["was"]["badput_h"] == pytest.approx(2)
    page = html(report)
    assert "Energy drawn by all machines in this window: not known" in page
    assert "Not all energy is known" in page


def test_a_window_of_which_nothing_is_told_has_no_figures(journal: Path) -> None:
    later = Window(WEEK.end_s + 30 * 86_400.0, WEEK.end_s + 37 * 86_400.0)
    report = report_of(journal, later, WEEK)
    assert report["was"] is None
    assert report["offenders"] is None
    assert report["before"]["was"]["starts"] == 4
    assert "has no record of this window" in html(report)
    earlier = report_of(journal, Window(MONDAY_S - 2e6, MONDAY_S - 1e6), Window(1e9, 1.1e9))
    assert earlier["was"] is None


def test_a_quiet_window_has_figures_that_are_zero_and_means_that_are_none(tmp_path: Path) -> None:
    events = [machine("m1", **M1), machine("m2", **M2)]
    was = report_of(write(tmp_path / "j.sqlite", events, 200))["was"]
    assert was["starts"] == 0
    assert was["wait_s"]["mean"] is None
    assert was["waste_ratio"] is None
    assert was["fairness"]["utility"] is None
    assert was["energy"]["drawn"]["kwh"] == pytest.approx(168 * 0.13)


def test_the_clock_of_the_site_is_that_of_the_journal(journal: Path) -> None:
    with Journal(journal, read_only=True) as opened:
        assert opened.meta(TIMEZONE_KEY, "UTC") == "UTC"
    assert report_of(journal)["window"]["begin"] == "2026-03-02T00:00+00:00"
