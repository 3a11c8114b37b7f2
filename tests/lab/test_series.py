"""Weekly and monthly parts of a run, which sum to the whole."""

import datetime as dt
from collections import Counter
from typing import Any

import pytest

from outrider.model.decisions import START, Decision
from outrider.plugins.finding import make_policy
from outrider_lab.running.campus_run import SampledRun, month_borders, week_borders
from outrider_lab.running.traces import GeneratedCampus

DAY_S = 86_400.0


@pytest.fixture(scope="module")
def ran() -> tuple[dict[str, Any], list[float]]:
    """A run's report, and the moments of its starts as its ledger has them."""
    starts = []

    def keep(decision: Decision) -> None:
        if decision.action == START:
            starts.append(decision.time_s)

    options: dict[str, Any] = {"weeks": 6.4, "machines": 40, "clusters": 4}
    campus = GeneratedCampus(5, tuple(options.items())).load()
    policy = make_policy("random_match", {}, 0, "test")
    return SampledRun(campus, [policy], keep).run(), starts


def test_the_parts_sum_to_the_run(ran: tuple[dict[str, Any], list[float]]) -> None:
    report, _ = ran
    for parts in (report["by_week"], report["by_month"]):
        for purpose in ("goodput", "badput"):
            total = sum(part[f"{purpose}_wh"] for part in parts)
            assert total == pytest.approx(report["energy_wh"][purpose], rel=1e-12)
        assert sum(part["starts"] for part in parts) == report["starts"]
        assert sum(part["completed"] for part in parts) == report["jobs"]["completed"]
        assert sum(part["evictions"] for part in parts) == sum(report["evictions"].values())
        assert sum(part["killed"] for part in parts) == report["evictions"]["killed"]
    assert report["evictions"]["killed"] > 0


def test_every_start_is_counted_in_the_week_it_happened(
    ran: tuple[dict[str, Any], list[float]],
) -> None:
    report, starts = ran
    by_week = Counter(int(time_s // (7 * DAY_S)) for time_s in starts)
    assert [part["starts"] for part in report["by_week"]] == [by_week[n] for n in range(7)]


def test_the_parts_follow_each_other_from_the_first_second_to_the_end(
    ran: tuple[dict[str, Any], list[float]],
) -> None:
    report, _ = ran
    for parts in (report["by_week"], report["by_month"]):
        assert parts[0]["start_s"] == 0.0
        assert parts[-1]["end_s"] == report["span_s"]
        assert [part["end_s"] for part in parts[:-1]] == [part["start_s"] for part in parts[1:]]
    assert [part["end_s"] / DAY_S for part in report["by_month"][:-1]] == [31.0]


def test_months_are_those_of_the_calendar() -> None:
    leap = month_borders(dt.datetime.fromisoformat("2012-01-01"), 366 * DAY_S)
    assert [s / DAY_S for s in leap] == [
        0, 31, 60, 91, 121, 152, 182, 213, 244, 274, 305, 335, 366,
    ]  # fmt: skip
    from_noon = month_borders(dt.datetime.fromisoformat("2010-12-30T12:00"), 40 * DAY_S)
    assert [s / DAY_S for s in from_noon] == [0, 1.5, 32.5, 40]


def test_a_week_that_the_end_cuts_short_is_a_stretch_too() -> None:
    assert [s / DAY_S for s in week_borders(14 * DAY_S)] == [0, 7, 14]
    assert [s / DAY_S for s in week_borders(15 * DAY_S)] == [0, 7, 14, 15]
    assert [s / DAY_S for s in week_borders(2 * DAY_S)] == [0, 2]
