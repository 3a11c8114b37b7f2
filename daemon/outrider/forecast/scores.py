"""Scores of forecasts: coverage, width and pinball loss, compared with recent waits."""

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.forecasts import Forecasts, pinball
from outrider.forecast.questions import Questions
from outrider.forecast.queue_state import Floats
from outrider.forecast.recalibration import as_seconds, recent_waits

WEEK_S: Final = 7 * 86400.0
_IN_A_WEEK: Final = 20
"""Minimal number of questions for which a week is scored."""


def scores(
    questions: Questions, predicted: Forecasts, judged: NDArray[np.bool_]
) -> dict[str, dict[str, Any]]:
    """Return the scores at submission and at full hours.

    Each has `questions`, `unknown` (no answer), `learned` (by the model), `coverage_ratio` of the
    80 % intervals, `coverage_p10_of_weeks_ratio` (its tenth percentile over weeks), `weeks`,
    `width_s` and `pinball_s` (means), and `width_ratio` and `pinball_ratio` relative to the recent
    waits of all jobs, recalibrated the same way. None: there is nothing to score.

    Args:
        questions: all, with their answers.
        predicted: forecast of each.
        judged: (questions,) which count; the others are only learned from.
    """
    return {
        "submission": _scores(questions, predicted, judged, questions.at_submission),
        "hourly": _scores(questions, predicted, judged, ~questions.at_submission),
    }


def _scores(
    questions: Questions, predicted: Forecasts, judged: NDArray[np.bool_], kind: NDArray[np.bool_]
) -> dict[str, Any]:
    rival_s = np.full((len(questions), 3), np.nan)
    if kind.any():
        rival_s[kind] = as_seconds(recent_waits(questions.asked_s[kind], questions.wait_s[kind]))
    rows = judged & kind & np.isfinite(questions.wait_s)
    known = rows & predicted.known
    both = known & ~np.isnan(rival_s[:, 0])
    wait_s, low_s, high_s = questions.wait_s, predicted.wait_s[:, 0], predicted.wait_s[:, 2]
    held = ((low_s <= wait_s) & (wait_s <= high_s)).astype(float)
    weeks = _by_week(questions.asked_s[known], held[known])
    loss_s = pinball(wait_s, predicted.wait_s)
    return {
        "questions": int(rows.sum()),
        "unknown": int((rows & ~predicted.known).sum()),
        "learned": int((known & predicted.learned).sum()),
        "coverage_ratio": _mean(held[known]),
        "coverage_p10_of_weeks_ratio": float(np.percentile(weeks, 10)) if len(weeks) else None,
        "weeks": len(weeks),
        "width_s": _mean((high_s - low_s)[known]),
        "pinball_s": _mean(loss_s[known]),
        "width_ratio": _ratio((high_s - low_s)[both], (rival_s[:, 2] - rival_s[:, 0])[both]),
        "pinball_ratio": _ratio(loss_s[both], pinball(wait_s, rival_s)[both]),
    }


def _by_week(asked_s: Floats, held: Floats) -> list[float]:
    """Return the coverage of each week with enough questions."""
    week = asked_s // WEEK_S
    return [
        float(held[week == one].mean())
        for one in np.unique(week)
        if (week == one).sum() >= _IN_A_WEEK
    ]


def _mean(values: Floats) -> float | None:
    return float(values.mean()) if len(values) else None


def _ratio(values: Floats, rival: Floats) -> float | None:
    return float(values.mean() / rival.mean()) if len(values) and rival.mean() > 0.0 else None
