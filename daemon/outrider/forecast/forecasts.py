"""Calibrated intervals from the quantiles of the replicates, question by question."""

from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.expected_starts import DAYS_AHEAD
from outrider.forecast.learned import REFIT_S, learned_quantiles
from outrider.forecast.questions import FEATURES, HIGH, LOW, MEDIAN, Questions
from outrider.forecast.queue_state import Floats
from outrider.forecast.recalibration import (
    INTERVAL_S,
    LEVELS,
    MAX_QUESTIONS,
    MIN_ANSWERS,
    as_log,
    as_seconds,
    censoring_weights,
    few_per_moment,
    moments,
    recalibrated,
    recent_waits,
)
from outrider.model.localtime import DAY_S

COLLAPSED: Final = 0.5
"""Raw coverage of the 80 % interval below which the simulated rule is not that of the site."""
NEW_RATIO: Final = 0.5
"""Maximal share of CPUs of users without history, in what a job waits for; beyond it no answer.

A job waits for running jobs and for requests before it."""


@dataclass(frozen=True)
class Forecasts:
    """Forecasts of waits, one row a question.

    Attributes:
        wait_s: (questions, 3) low, median and high of the wait from the question on; nan: not
            known.
        learned: whether the quantile model made it, not the rule.
        is_new: not known because too little is known of the users that it waits for.
    """

    wait_s: Floats
    learned: NDArray[np.bool_]
    is_new: NDArray[np.bool_]

    @property
    def known(self) -> NDArray[np.bool_]:
        """(questions,) True where there is an answer."""
        is_known: NDArray[np.bool_] = np.logical_and.reduce(np.isfinite(self.wait_s), axis=1)
        return is_known


def forecasts(questions: Questions, total_cpus: int) -> Forecasts:
    """Return the forecasts, each from the information available at its question.

    Questions at submission and at full hours are separate. A forecast has the replicates'
    quantiles, recalibrated. Where their raw coverage collapsed, a model that learned from them
    takes over, once its pinball loss is less. The recent waits of all jobs, which need no
    simulation, are a rival: where their recent loss is less, as in a new kind of burst, there is no
    forecast.

    Args:
        questions: in the order in which they were asked.
        total_cpus: of the site.
    """
    wait_s = np.full((len(questions), len(LEVELS)), np.nan)
    learned = np.zeros(len(questions), np.bool_)
    for kind in (questions.at_submission, ~questions.at_submission):
        if kind.any():
            wait_s[kind], learned[kind] = _of_kind(questions.only(kind))
    is_new = _is_new(questions, total_cpus)
    wait_s[is_new] = np.nan
    return Forecasts(wait_s, learned, is_new)


def pinball(wait_s: Floats, quantiles_s: Floats) -> Floats:
    """Return (questions,) the mean pinball loss of the quantiles, seconds (Koenker 1978)."""
    over = wait_s[:, None] - quantiles_s
    levels = np.array(LEVELS)
    loss: Floats = np.maximum(levels * over, (levels - 1.0) * over).mean(axis=1)
    return loss


def _of_kind(questions: Questions) -> tuple[Floats, NDArray[np.bool_]]:
    """Return (questions, 3) waits of one kind, and where they are from the model."""
    asked_s, wait_s = questions.asked_s, questions.wait_s
    raw_s = questions.quantiles_s[:, [LOW, MEDIAN, HIGH]]
    by_rule = as_seconds(recalibrated(asked_s, wait_s, as_log(raw_s)))
    weeks = np.arange(asked_s[0] + REFIT_S, asked_s[-1] + REFIT_S, REFIT_S)
    held = ((raw_s[:, 0] <= wait_s) & (wait_s <= raw_s[:, 2])).astype(float)
    collapsed = [week for week in weeks if _recent_mean(held, asked_s, wait_s, week) < COLLAPSED]
    by_model = learned_quantiles(questions, np.array(collapsed))
    predicted = ~np.isnan(by_model[:, 0])
    takes_over = np.zeros(len(questions), np.bool_)
    if predicted.any():
        by_model[predicted] = recalibrated(
            asked_s[predicted], wait_s[predicted], by_model[predicted]
        )
        by_model = as_seconds(by_model)
        answered, gain_s = np.isfinite(wait_s), np.full(len(questions), np.nan)
        gain_s[answered] = pinball(wait_s[answered], by_rule[answered]) - pinball(
            wait_s[answered], by_model[answered]
        )
        for week in collapsed:
            if _recent_mean(gain_s, asked_s, wait_s, week) > 0.0:
                takes_over |= predicted & (asked_s >= week) & (asked_s < week + REFIT_S)
    rival_s = as_seconds(recent_waits(asked_s, wait_s))
    out = by_rule.copy()
    out[_is_unproven(questions, by_rule, rival_s)] = np.nan
    if takes_over.any():
        by_model[_is_unproven(questions, by_model, rival_s)] = np.nan
        out[takes_over] = by_model[takes_over]
    return out, takes_over


def _is_unproven(questions: Questions, predicted_s: Floats, rival_s: Floats) -> NDArray[np.bool_]:
    """Return where the rival, the recent waits, was recently the better forecast."""
    asked_s = questions.asked_s
    few = few_per_moment(asked_s)
    some, predicted_s, rival_s = questions.at(few), predicted_s[few], rival_s[few]
    # beyond both, each further second costs both the same: the gain is known before the answer
    wait_s = np.fmin(some.wait_s, np.fmax(predicted_s, rival_s).max(axis=1))
    is_start = predicted_s[:, -1] < DAYS_AHEAD * DAY_S  # beyond, nothing was simulated
    gain_s = np.full(len(few), np.nan)
    gain_s[is_start] = (pinball(wait_s, rival_s) - pinball(wait_s, predicted_s))[is_start]
    out, is_worse, computed_s = np.zeros(len(questions), np.bool_), False, -np.inf
    for begin, end in moments(asked_s):
        if asked_s[begin] - computed_s >= INTERVAL_S:
            computed_s = float(asked_s[begin])
            is_worse = _recent_mean(gain_s, some.asked_s, wait_s, computed_s) < 0.0
        out[begin:end] = is_worse
    return out


def _recent_mean(amounts: Floats, asked_s: Floats, wait_s: Floats, now_s: float) -> float:
    """Return the mean over the last answered questions at a moment; nan if too few."""
    until = int(np.searchsorted(asked_s, now_s))
    (rows,) = (~np.isnan(amounts[:until])).nonzero()
    rows = rows[-MAX_QUESTIONS:]
    seen, weights = censoring_weights(now_s - asked_s[rows], wait_s[rows])
    if seen.sum() < MIN_ANSWERS:
        return np.nan
    return float(np.average(amounts[rows[seen]], weights=weights))


def _is_new(questions: Questions, total_cpus: int) -> NDArray[np.bool_]:
    """Return where users without history have too large a share of what is waited for."""
    columns = dict(zip(FEATURES, questions.known.T, strict=True))
    ahead = columns["ahead_cpus"] / total_cpus
    share = (columns["running_new"] + columns["ahead_new"] * ahead) / (1.0 + ahead)
    is_new: NDArray[np.bool_] = share > NEW_RATIO
    return is_new
