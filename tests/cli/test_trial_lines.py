"""Lines of a canary trial: ratios appear when it ends, each next to the stated one."""

from typing import Any

import msgspec
import pytest

from outrider.cli.status_text import trial_lines
from outrider.service.canary_trial.record import TrialRecord, trial_shown
from outrider.service.shapes.values import Compared, TrialOutcome
from tests.service.canary_trial.trials import at, trial

STATED = {"energy_ratio": {"estimate": 0.75, "low": 0.7, "high": 0.8}}
WINDOW = "2010-01-04 00:00 UTC to 2010-02-02 00:00 UTC"
BEGIN = f"(survival, days drawn at random, {WINDOW}, seed 1)"


def lines(**state: Any) -> list[str]:
    """Return a trial in a given state, on its third day."""
    made = trial(stated=STATED, stated_as="next")
    shown = trial_shown(TrialRecord(made, **state), at(made, 2))
    return trial_lines(msgspec.to_builtins(shown), "UTC")


def test_while_it_goes_on_there_is_no_ratio() -> None:
    (line,) = lines()
    now = "it acts now" if trial().acts[2] else "it does not act now"
    assert line.startswith(f"trial      2 of 28 days done: {now} until 2010-01-")
    assert line.endswith(f"; ratios are shown when it ends {BEGIN}")
    (line,) = lines(restarts=2)
    assert line.endswith(f"{BEGIN[:-1]}, 2 restarts of the daemon)")


def test_one_that_was_broken_off_says_why() -> None:
    (line,) = lines(state="broken_off", why="the mode is shadow", ended_s=at(trial(), 2))
    assert line == f"trial      Stopped after 2 of 28 days: the mode is shadow {BEGIN}"


@pytest.mark.parametrize(
    ("within", "agrees", "verdict"),
    [
        (True, True, "within"),
        (False, True, "outside, but they agree"),
        (False, False, "outside, and they disagree"),
    ],
)
def test_at_its_end_each_ratio_stands_beside_what_was_stated(
    within: bool, agrees: bool, verdict: str
) -> None:
    energy = Compared(0.78, 0.6, 1.0, 7.8, 10.0, STATED["energy_ratio"], within, agrees)
    unknown = Compared(None, None, None, None, None)
    outcome = TrialOutcome(14, {"energy_ratio": energy, "evictions_ratio": unknown})
    compared = "days with acting compared with days without"
    stated = "forecast -25.0 % (-30.0 % to -20.0 %)"
    assert lines(state="ended", outcome=outcome) == [
        f"trial      Ended: {compared}, 14 pairs of days, 90 % intervals {BEGIN}",
        f"           energy per useful CPU time: -22.0 % (-40.0 % to +0.0 %); {stated}: {verdict}",
        "           evictions per completed job: not known",
    ]


def test_one_that_was_too_short_says_so_and_where_there_was_none_there_is_no_line() -> None:
    short = TrialOutcome(2, {}, "too short to say: 2 pairs of days")
    assert lines(state="ended", outcome=short) == [
        f"trial      Ended: too short to say: 2 pairs of days {BEGIN}"
    ]
    assert trial_lines(None, "UTC") == []
