"""Expected starts in `outrider explain` and `outrider status`."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from outrider.service.shapes.jobs import BatchSystem
from outrider.service.shapes.values import JobStart, StartsShown
from outrider.service.views.sentences import start_lines, starts_summary
from tests.cli.running import outrider
from tests.cli.test_asking import Stranger, serving
from tests.service.web.small_answers import (
    BATCH_SYSTEM,
    EXPECTED_STARTS,
    NOW,
    SCORES,
    START,
    STATUS,
)
from tests.service.web.small_site import SmallSite

SAID = {"answer": "interval", "start": START, "why": None}
UNKNOWN = {"answer": "not_known", "start": None, "why": "a new kind of burst"}
SLURM = msgspec.convert(BATCH_SYSTEM, BatchSystem)
FACTS = "first fit run forward, computed 40 s ago"
EVENING = "2026-11-21 18:20 UTC, between 17:50 and 20:05"
NOW_START = {"answer": "next_pass", "start": dict.fromkeys(START, NOW - 40.0), "why": None}
TOLD: dict[str, Any] = {
    **SAID, "source": "starts.json", "asked_s": NOW - 40.0, "rule": "easy", "scores": SCORES,
    "planned_s": None, "under": [], "under_asked_s": None,
}  # fmt: skip


def summary_of(shown: dict[str, Any]) -> str:
    return starts_summary(msgspec.convert(shown, StartsShown), NOW)


def start_of(told: dict[str, Any]) -> JobStart:
    return msgspec.convert(told, JobStart)


def lines(zone: str = "UTC", **fields: Any) -> list[str]:
    """Return the explanation of a job, by default without information from Slurm."""
    return list(start_lines(start_of(TOLD | fields), None, NOW, zone))


def test_the_start_has_its_interval_rule_and_age() -> None:
    scores = "Of 1,240 starts predicted at submission, 81.0 % fell within the 80 % interval"
    beside = "For 320 jobs that the batch system planned, its mean loss is 20 min"
    assert lines(rule="first_fit") == [
        f"Expected to start {EVENING} (80 % interval, {FACTS})",
        scores,
        f"{beside}, Outrider's 5.0 min",
    ]
    assert lines(scores={"submission": SCORES["submission"]})[1] == scores


def test_other_rules_have_other_names() -> None:
    assert "(80 % interval, backfill (EASY) run forward, computed" in lines(rule="easy")[0]
    assert "(80 % interval, computed 40 s ago)" in lines(rule=None)[0]


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        (NOW_START, f"Expected to start now, in the next pass ({FACTS})"),
        (UNKNOWN, f"Expected start not known: a new kind of burst ({FACTS})"),
        ({"answer": "not_said", "start": None, "why": "the last answer is 16 min old"},
         "Expected start not available: the last answer is 16 min old"),
    ],
)  # fmt: skip
def test_now_not_known_and_not_said_are_three_things(answer: dict[str, Any], line: str) -> None:
    assert lines(rule="first_fit", scores={}, **answer) == [line]


def test_each_policy_has_its_own_start_and_the_batch_system_its_own_too() -> None:
    told = TOLD | {
        "scores": {}, "under_asked_s": NOW - 180.0,
        "under": [{"policy": "survival", **SAID}, {"policy": "fifo", **NOW_START},
                  {"policy": "sjf", **UNKNOWN}],
    }  # fmt: skip
    assert list(start_lines(start_of(told), SLURM, NOW, "UTC"))[1:] == [
        f"survival would start it {EVENING} (80 % interval, computed 3.0 min ago)",
        "fifo would start it now, in the next pass (computed 3.0 min ago)",
        "Start under sjf not known: a new kind of burst (computed 3.0 min ago)",
        "slurm itself expects it to start 2026-11-21 18:10:00 UTC",
    ]
    hidden = told | {"planned_s": NOW + 900.0}
    assert list(start_lines(start_of(hidden), None, NOW, "UTC"))[-1] == (
        "The batch system itself expected it to start 2026-11-21 17:55:00 UTC"
    )
    assert list(start_lines(None, SLURM, NOW, "UTC")) == [
        "slurm itself expects it to start 2026-11-21 18:10:00 UTC"
    ]


def test_times_are_the_sites_and_name_each_day_and_zone_where_these_differ() -> None:
    first = lines("Asia/Tokyo", start=START | {"low_s": NOW - 2.75 * 3600.0})[0]
    assert "2026-11-22 03:20 JST, between 2026-11-21 23:55 JST and 2026-11-22 05:05 JST" in first
    into_winter = {"low_s": 1_792_884_600.0, "median_s": 1_792_891_800.0, "high_s": 1_792_893_600.0}
    first = lines("Europe/Berlin", start=into_winter)[0]  # 25 October 2026: the clock goes back
    assert "2026-10-25 02:30 CET, between 2026-10-25 01:30 CEST and 2026-10-25 03:00 CET" in first
    close = {"low_s": NOW + 5.0, "median_s": NOW + 9.0, "high_s": NOW + 70.0}
    assert "17:40:09 UTC, between 17:40:05 and 17:41:10" in lines(start=close)[0]
    beyond = dict.fromkeys(START, 1e15)
    assert "1000000000000000 s, between" in lines(start=beyond)[0]


@pytest.fixture
def telling() -> Callable[[Any], Any]:
    """Run a daemon that gives the same answer to all clients."""

    def told(answer: Any) -> Any:
        class Told(Stranger):
            says = json.dumps(answer).encode()

        return serving(Told)

    return told


def test_the_command_prints_it_in_a_terminal_of_any_width(
    telling: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are never folded or cut: a terminal does that, and a script reads whole ones."""
    monkeypatch.setenv("COLUMNS", "40")
    answer = SmallSite().explain("1042.0") | {"timezone": "UTC", "now_s": NOW}
    told = {
        "expected_start": TOLD,
        "start_lines": list(start_lines(start_of(TOLD), SLURM, NOW, "UTC")),
    }
    with telling(answer | told) as url:
        out = outrider("explain", "1042.0", "--url", url).out.splitlines()
    assert f"  {lines()[0]}" in out
    assert "  slurm itself expects it to start 2026-11-21 18:10:00 UTC" in out
    del answer["expected_start"], answer["now_s"], answer["start_lines"]
    with telling(answer) as url:  # an older daemon
        assert "Expected to start" not in outrider("explain", "1042.0", "--url", url).out


def test_the_status_has_a_line_for_all_jobs(telling: Callable[[Any], Any]) -> None:
    shown = EXPECTED_STARTS | {"rule": "first_fit"}
    starts = shown | {"summary": summary_of(shown)}
    with telling(STATUS | {"expected_starts": starts}) as url:
        out = outrider("status", "--url", url).out.splitlines()
    [line] = [line for line in out if line.startswith("starts     ")]
    assert line.startswith(
        f"starts     Expected starts of 86 queued jobs, 3 of them not known ({FACTS}). Of 1,240 "
    )
    assert "predicted at submission, 81.0 % fell within the 80 % interval. For 320 jobs" in line
    none: dict[str, Any] = {**shown, "not_said": "no journal"}
    none |= {"summary": summary_of(none)}
    with telling(STATUS | {"expected_starts": none}) as url:
        text = outrider("status", "--url", url).out
        assert "starts     Expected starts are not available: no journal.\n" in text
    with telling(STATUS | {"expected_starts": None}) as url:
        assert "starts   " not in outrider("status", "--url", url).out


def test_the_ledger_has_no_expected_start(campus: Path, tmp_path: Path) -> None:
    file = tmp_path / "ledger.sqlite"
    outrider("replay", campus, "--policy", "fifo", "--until", 100_000, "--ledger", file)
    rows = outrider("ledger", file, "--export", "jsonl").out.splitlines()
    job = json.loads(rows[-1])["job"]
    told = outrider("explain", job, "--ledger", file, "--json").json()
    assert (told["source"], told["expected_start"], told["now_s"]) == ("ledger", None, None)
