"""Intervals that hold: each quantile is moved by what it has missed of the answers lately.

Conformal intervals, one side at a time (Romano, Patterson and Candès 2019), in the logarithm of the
wait: the level-a quantile of the wait is moved by the level-a quantile of (answer - quantile) over
the last questions. Short waits are answered first, so of the last questions too many answers are
short. An answer after w seconds is one of the questions that are w seconds old at least; it counts
for as many as there are for each of those (inverse probability of censoring: Robins and Rotnitzky
1992). Questions of one moment are much alike: of these only a few count.

Waits that overlap wait for the same jobs, and a thousand answers may come of one burst. So a
quantile is moved by n / (n + c) of that: n is for how many waits these answers count that do not
overlap. After few bursts it stays near what the replicates say.
"""

from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.forecast.queue_state import Floats, Ints

LEVELS: Final = (0.1, 0.5, 0.9)
"""Of the interval's lower bound, the median, the upper bound."""
LAST: Final = 3000
"""How many of the last questions count."""
A_MOMENT: Final = 8
"""How many of those of one moment do."""
LEAST: Final = 50
"""With fewer answers, quantiles stay as they are."""
PRIOR: Final = 10.0
"""c above: how many independent answers make a correction worth as much as none at all."""
EACH_S: Final = 3600.0
"""How often it is reckoned anew, seconds."""
_OFFSET_S: Final = 60.0
_MOST_WEIGHT: Final = 50.0


def as_log(wait_s: Floats) -> Floats:
    """The scale on which errors are alike: a minute more or less matters to short waits alone."""
    return np.log(wait_s + _OFFSET_S)


def as_seconds(log_wait: Floats) -> Floats:
    """Waits by their values on that scale; never negative."""
    return np.maximum(0.0, np.exp(log_wait) - _OFFSET_S)


def moments(asked_s: Floats) -> Iterator[tuple[int, int]]:
    """First row and end of the questions of each moment, which are in the order of time."""
    (begins,) = np.diff(asked_s, prepend=-np.inf).nonzero()
    ends = np.append(begins[1:], len(asked_s))
    yield from zip(begins.tolist(), ends.tolist(), strict=True)


def few_a_moment(asked_s: Floats) -> Ints:
    """Rows of a few questions of each moment, evenly over its queue."""
    (begins,) = np.diff(asked_s, prepend=-np.inf).nonzero()
    lasts = np.append(begins[1:], len(asked_s))[: len(begins)] - 1
    evenly = np.arange(A_MOMENT) * ((lasts - begins) / (A_MOMENT - 1))[:, None] + begins[:, None]
    evenly[:, -1] = lasts
    few = lasts - begins < A_MOMENT  # all of them
    evenly[few] = np.minimum(begins[few, None] + np.arange(A_MOMENT), lasts[few, None])
    rows: Ints = np.unique(evenly.astype(np.int64))
    return rows


def censoring_weights(age_s: Floats, wait_s: Floats) -> tuple[NDArray[np.bool_], Floats]:
    """Return which questions have been answered, and for how many each of these answers counts.

    Args:
        age_s: (questions,) seconds since each was asked, descending.
        wait_s: (questions,) after how many seconds it is answered; looked at where that has been.
    """
    seen = wait_s <= age_s
    old_enough = np.searchsorted(-age_s, -wait_s[seen], "right") / max(1, len(age_s))
    return seen, np.minimum(_MOST_WEIGHT, 1.0 / old_enough)


def independent(asked_s: Floats, answer_s: Floats) -> float:
    """For how many waits that do not overlap these count.

    The sum of their average uniqueness (López de Prado 2018, section 4.4): of each wait the mean,
    over its seconds, of 1 / (waits that last then).

    Args:
        asked_s: (questions,) when each began to wait.
        answer_s: (questions,) when it ended.
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
    """(3,) for each of `LEVELS` the least value up to which the weights reach that of their sum.

    Args:
        values: (questions, 3) a column a level.
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
    """(questions, 3) the quantiles, each moved by what was known when it was asked.

    Args:
        asked_s: (questions,) ascending.
        wait_s: (questions,) the answers.
        quantiles: (questions, 3) for `LEVELS`, as of `as_log`.
        prior: c above; 0: they are moved by all that they missed.
    """
    few = few_a_moment(asked_s)
    few_asked_s, few_wait_s = asked_s[few], wait_s[few]
    missed = as_log(few_wait_s)[:, None] - quantiles[few]
    out, moved, reckoned_s = quantiles.copy(), np.zeros(len(LEVELS)), -np.inf
    for begin, end in moments(asked_s):
        now_s = float(asked_s[begin])
        if now_s - reckoned_s >= EACH_S:
            reckoned_s = now_s
            until = int(np.searchsorted(few_asked_s, now_s))
            last = slice(max(0, until - LAST), until)
            moved = _moved(now_s - few_asked_s[last], few_wait_s[last], missed[last], prior)
        out[begin:end] += moved
    return np.sort(out, axis=1)


def _moved(age_s: Floats, wait_s: Floats, missed: Floats, prior: float) -> Floats:
    """(3,) by how much each quantile is to be moved."""
    seen, weights = censoring_weights(age_s, wait_s)
    if seen.sum() < LEAST:
        return np.zeros(len(LEVELS))
    n = independent(-age_s[seen], wait_s[seen] - age_s[seen]) if prior else 1.0
    worth = n / (n + prior)
    return worth * weighted_quantiles(missed[seen], weights)


def recent_waits(asked_s: Floats, wait_s: Floats) -> Floats:
    """(questions, 3) the quantiles of what was answered lately, of any job: the rival to beat.

    As of `as_log`; nan where too little was.
    """
    out = recalibrated(asked_s, wait_s, np.zeros((len(asked_s), len(LEVELS))), prior=0.0)
    out[(out == 0.0).all(axis=1)] = np.nan
    return out
