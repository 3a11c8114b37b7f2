"""Conformal calibration of intervals: each quantile is shifted by its recent errors.

Conformal intervals, one side at a time (Romano, Patterson and Candès 2019), in the logarithm of the
wait: the level-a quantile of the wait is shifted by the level-a quantile of (answer - quantile)
over the last questions. Short waits are answered first, so among the last questions too many
answers are short. An answer after w seconds represents all questions that are at least w seconds
old (inverse probability of censoring: Robins and Rotnitzky 1992). Questions of one moment are
similar, so only a few of them count.

Overlapping waits wait for the same jobs, and one burst may give a thousand answers. So a quantile
is shifted by n / (n + c) of that: n is the number of waits without overlap that these answers
amount to. After few bursts it stays near the replicates' quantile.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.queue_state import Floats, Ints

LEVELS: Final = (0.1, 0.5, 0.9)
"""Levels of the interval's lower bound, the median, the upper bound."""
MAX_QUESTIONS: Final = 3000
"""Number of the last questions that count."""
MAX_PER_MOMENT: Final = 8
"""Number of questions of one moment that count."""
MIN_ANSWERS: Final = 50
"""Minimal number of answers for a shift."""
PRIOR: Final = 10.0
"""c above: number of independent answers for which half of the correction is applied."""
INTERVAL_S: Final = 3600.0
"""Interval of recomputing the shifts, seconds."""
_OFFSET_S: Final = 60.0
_MAX_WEIGHT: Final = 50.0


def as_log(wait_s: Floats) -> Floats:
    """Map waits to a log scale on which a minute matters for short waits only."""
    return np.log(wait_s + _OFFSET_S)


def as_seconds(log_wait: Floats) -> Floats:
    """Map values on that scale back to waits in seconds; never negative."""
    return np.maximum(0.0, np.exp(log_wait) - _OFFSET_S)


def moments(asked_s: Floats) -> Iterator[tuple[int, int]]:
    """Yield first row and end of the questions of each moment; they must be in time order."""
    (begins,) = np.diff(asked_s, prepend=-np.inf).nonzero()
    ends = np.append(begins[1:], len(asked_s))
    yield from zip(begins.tolist(), ends.tolist(), strict=True)


def few_per_moment(asked_s: Floats) -> Ints:
    """Return rows of a few questions of each moment, evenly over its queue."""
    (begins,) = np.diff(asked_s, prepend=-np.inf).nonzero()
    lasts = np.append(begins[1:], len(asked_s))[: len(begins)] - 1
    evenly = (
        np.arange(MAX_PER_MOMENT) * ((lasts - begins) / (MAX_PER_MOMENT - 1))[:, None]
        + begins[:, None]
    )
    evenly[:, -1] = lasts
    few = lasts - begins < MAX_PER_MOMENT  # all of them
    evenly[few] = np.minimum(begins[few, None] + np.arange(MAX_PER_MOMENT), lasts[few, None])
    rows: Ints = np.unique(evenly.astype(np.int64))
    return rows


def censoring_weights(age_s: Floats, wait_s: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which questions have been answered, and the weight of each answer.

    Args:
        age_s: (questions,) seconds since each was asked, descending.
        wait_s: (questions,) seconds until the answer; used only where it is known by now.
    """
    seen = wait_s <= age_s
    old_enough = np.searchsorted(-age_s, -wait_s[seen], "right") / max(1, len(age_s))
    return seen, np.minimum(_MAX_WEIGHT, 1.0 / old_enough)


def independent(asked_s: Floats, answer_s: Floats) -> float:
    """Return the number of waits without overlap that these amount to.

    The sum of their average uniqueness (López de Prado 2018, section 4.4): of each wait the mean,
    over its seconds, of 1 / (waits that last then).

    Args:
        asked_s: (questions,) begin of each wait.
        answer_s: (questions,) its end.
    """
    lasts = answer_s > asked_s
    asked_s, answer_s = asked_s[lasts], answer_s[lasts]
    if not len(asked_s):
        return 0.0
    times_s, at = np.unique(np.concatenate([asked_s, answer_s]), return_inverse=True)
    begin, end = at[: len(asked_s)], at[len(asked_s) :]
    n = len(times_s)
    last = np.cumsum(np.bincount(begin, minlength=n) - np.bincount(end, minlength=n))[:-1]
    shared_s = np.where(last > 0, np.diff(times_s) / np.maximum(1, last), 0.0)
    until_s = np.concatenate([[0.0], np.cumsum(shared_s)])
    return float(((until_s[end] - until_s[begin]) / (answer_s - asked_s)).sum())


def weighted_quantiles(values: Floats, weights: Floats) -> Floats:
    """Return (3,) for each of `LEVELS` the weighted quantile of its column.

    It is the least value up to which the weights reach that share of their sum.

    Args:
        values: (questions, 3) a column for each level.
        weights: (questions,)
    """
    order = values.argsort(axis=0, kind="stable")
    reached = np.cumsum(weights[order], axis=0)
    places = (reached < np.array(LEVELS) * reached[-1]).sum(axis=0)
    rows = order[np.minimum(places, len(order) - 1), np.arange(len(LEVELS))]
    out: Floats = values[rows, np.arange(len(LEVELS))]
    return out


def recalibrated(
    asked_s: Floats, wait_s: Floats, quantiles: Floats, prior: float = PRIOR
) -> Floats:
    """Return (questions, 3) the quantiles, each shifted by the errors known at its question.

    Args:
        asked_s: (questions,) ascending.
        wait_s: (questions,) the answers.
        quantiles: (questions, 3) for `LEVELS`, on the scale of `as_log`.
        prior: c above; 0: they are shifted by the whole errors.
    """
    few = few_per_moment(asked_s)
    few_asked_s, few_wait_s = asked_s[few], wait_s[few]
    missed = as_log(few_wait_s)[:, None] - quantiles[few]
    out, moved, computed_s = quantiles.copy(), np.zeros(len(LEVELS)), -np.inf
    for begin, end in moments(asked_s):
        now_s = float(asked_s[begin])
        if now_s - computed_s >= INTERVAL_S:
            computed_s = now_s
            until = int(np.searchsorted(few_asked_s, now_s))
            last = slice(max(0, until - MAX_QUESTIONS), until)
            moved = _moved(now_s - few_asked_s[last], few_wait_s[last], missed[last], prior)
        out[begin:end] += moved
    return np.sort(out, axis=1)


def _moved(age_s: Floats, wait_s: Floats, missed: Floats, prior: float) -> Floats:
    """Return (3,) the shift of each quantile."""
    seen, weights = censoring_weights(age_s, wait_s)
    if seen.sum() < MIN_ANSWERS:
        return np.zeros(len(LEVELS))
    n = independent(-age_s[seen], wait_s[seen] - age_s[seen]) if prior else 1.0
    weight = n / (n + prior)
    return weight * weighted_quantiles(missed[seen], weights)


def recent_waits(asked_s: Floats, wait_s: Floats) -> Floats:
    """Return (questions, 3) quantiles of the recent answers of all jobs: the rival forecast.

    On the scale of `as_log`; nan where there are too few answers.
    """
    out = recalibrated(asked_s, wait_s, np.zeros((len(asked_s), len(LEVELS))), prior=0.0)
    out[(out == 0.0).all(axis=1)] = np.nan
    return out
