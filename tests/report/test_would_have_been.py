"""Estimates for other policies: ratios times measured amounts, or the reason for having none."""

import json
from pathlib import Path
from typing import Any

import pytest

from outrider.model.errors import ConfigurationError
from outrider.report.document import answer_of, read_answer
from outrider.report.figures import Tariff
from outrider.report.html import html, summary
from outrider.report.windows import Window
from outrider.twin.answer_file import TwinAnswer
from tests.report.journals import HOUR_S, MONDAY_S, WEEK, job, machine, report_of, write

TARIFF = Tariff(0.5, "EUR", 400.0)


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    """Write a journal: at one kilowatt, two wasted hours and three completed, a week apart."""
    events = [
        machine("m1", active_w=1000.0, idle_w=10.0),
        *job("j1", "alice", -150, [(-149, "m1", -147, "owner"), (-146, "m1", -145, None)]),
        *job("j2", "bob", 5, [(5, "m1", 7, None)]),
    ]
    events[0] = machine("m1", -160, active_w=1000.0, idle_w=10.0)
    return write(tmp_path / "journal.sqlite", events, last_h=170)


def answer(begin_h: float = -160, end_h: float = 170, **more: Any) -> TwinAnswer:
    """Return a twin result with half the badput and a fifth less energy."""
    ratios = {
        "energy_ratio": {"estimate": 0.8, "low": 0.7, "high": 0.9, "level": 0.9},
        "badput_ratio": {"estimate": 0.5, "low": 0.4, "high": 1.1, "level": 0.9},
        "overhead_mean_ratio": {"estimate": 1.2, "low": 1.0, "high": 1.4, "level": 0.9},
        "evictions_ratio": None,
    }
    begin_s, end_s = MONDAY_S + begin_h * HOUR_S, MONDAY_S + end_h * HOUR_S
    report = {
        "window": {"begin_s": begin_s, "end_s": end_s}, "incumbent": "fifo", "refused": None,
        "past": {"survival": ratios}, "basis": {"load_cpus": 0.01, "waste_share": 0.4},
    }  # fmt: skip
    return answer_of(report | more)


def test_ratios_hold_for_the_twins_window_and_not_for_the_week(journal: Path) -> None:
    report = report_of(journal, tariff=TARIFF, answer=answer())
    found = report["would_have_been"]
    assert report["was"]["goodput_h"] == 2
    assert found["was"]["energy"]["kwh"] == pytest.approx(5)  # of both weeks
    energy = found["past"]["survival"]["energy_ratio"]
    assert energy["told_apart"]
    assert energy["would"]["kwh"] == pytest.approx({"estimate": 4, "low": 3.5, "high": 4.5})
    assert energy["saved"]["kwh"] == pytest.approx({"estimate": 1, "low": 0.5, "high": 1.5})
    assert energy["saved"]["money"] == pytest.approx({"estimate": 0.5, "low": 0.25, "high": 0.75})
    assert energy["saved"]["co2_kg"] == pytest.approx({"estimate": 0.4, "low": 0.2, "high": 0.6})
    badput = found["past"]["survival"]["badput_ratio"]
    assert not badput["told_apart"]
    assert badput["saved"]["badput_h"] == pytest.approx({"estimate": 1, "low": -0.2, "high": 1.2})
    assert found["past"]["survival"]["overhead_mean_ratio"]["would"] is None
    assert found["past"]["survival"]["evictions_ratio"] is None
    page = html(report)
    assert "not the window of this report" in page
    assert "1.0 kWh (0.5 to 1.5 kWh)" in page


def test_the_last_moment_of_the_journal_belongs_to_the_twins_window(tmp_path: Path) -> None:
    events = [machine("m1", active_w=1000.0), *job("j1", "a", 1, [(1, "m1", 170, None)])]
    report = report_of(write(tmp_path / "j", events, 170), answer=answer(-20, 170))
    assert report["would_have_been"]["was"]["energy"]["kwh"] == pytest.approx(169)


def test_without_tariff_there_is_no_money_and_without_watts_no_energy(tmp_path: Path) -> None:
    events = [machine("m1"), *job("j1", "a", 1, [(1, "m1", 3, "owner")])]
    report = report_of(write(tmp_path / "j", events, 170), answer=answer(-20, 170))
    found = report["would_have_been"]
    assert "watts" in found["unknown"]
    assert found["past"]["survival"]["energy_ratio"]["saved"] is None
    assert found["past"]["survival"]["badput_ratio"]["saved"]["badput_h"]["estimate"] == 1
    assert "Energy savings under survival are not known" in summary(report)[-1]


def test_a_window_that_the_journal_tells_in_part_gets_no_amounts(journal: Path) -> None:
    found = report_of(journal, answer=answer(begin_h=-400))["would_have_been"]
    assert found["was"] is None
    assert "only a part" in found["unknown"]
    energy = found["past"]["survival"]["energy_ratio"]
    assert energy["ratio"]["estimate"] == 0.8
    assert energy["saved"] is None


def test_a_refusal_is_shown_with_its_reason(journal: Path) -> None:
    report = report_of(journal, answer=answer(past={}, refused="the window is short: 3 days"))
    assert "The twin refused: the window is short: 3 days" in html(report)
    assert "not known: the window is short" in summary(report)[-1]


def test_a_forecast_expires_when_the_week_after_it_is_otherwise(journal: Path) -> None:
    ratio = {"estimate": 0.8, "low": 0.5, "high": 1.2, "level": 0.9}
    forecast: dict[str, Any] = {"next": {"survival": {"energy_ratio": ratio}}}

    def of_week(basis: dict[str, float], end_h: float) -> Any:
        asked = answer(end_h=end_h, basis=basis | {"most_log_change": 0.2}, **forecast)
        return report_of(journal, answer=asked)["would_have_been"]["forecast"]

    load = 2 / 168  # j2: two hours, none wasted, so that the change of waste is not known
    assert of_week({"load_cpus": load * 1.5, "waste_share": 0.4}, 0)["expired"] is True
    assert of_week({"load_cpus": load, "waste_share": 0.4}, 0)["expired"] is None
    within = of_week({"load_cpus": load, "waste_share": 0.4}, 170)
    assert within["expired"] is None  # the week lies in the twin's own window
    early = Window(WEEK.begin_s - 155 * HOUR_S, WEEK.begin_s - 140 * HOUR_S)
    asked = answer(
        -160, -155, basis={"load_cpus": 0.2, "waste_share": 2 / 3, "most_log_change": 0.2},
        **forecast,
    )  # fmt: skip
    before = Window(early.begin_s - 10, early.begin_s)
    report = report_of(journal, early, before, answer=asked)
    assert report["would_have_been"]["forecast"]["expired"] is False
    assert "in this window fit it" in html(report)


@pytest.mark.parametrize(
    "text",
    [
        "no JSON", "{}", '{"window": 3}', "\udcff",
        json.dumps({"window": {"begin_s": 5, "end_s": 1}, "incumbent": None, "refused": None,
                    "past": {}}),
        json.dumps({"window": {"begin_s": 1, "end_s": 5}, "incumbent": None, "refused": None,
                    "past": {"p": {"energy_ratio":
                                   {"estimate": 2, "low": 3, "high": 4, "level": 0.9}}}}),
        json.dumps({"window": {"begin_s": 1, "end_s": 5}, "incumbent": None, "refused": None,
                    "past": {"p": {"energy_ratio":
                                   {"estimate": -1, "low": -2, "high": 4, "level": 0.9}}}}),
    ],
)  # fmt: skip
def test_what_is_no_answer_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "answer.json"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ConfigurationError, match=r"answer\.json: is not a result of the twin"):
        read_answer(path)
    with pytest.raises(ConfigurationError, match="cannot be read"):
        read_answer(tmp_path / "none.json")
