"""Quantile model that learns what the simulated rule does not cover.

If the batch system's rule is not the simulated one, the replicates' quantiles are biased, but still
contain much information on the queue. Gradient boosting of the quantile loss uses them and other
known data as features. It is fitted again each week, from the answers known by then.
"""

from typing import Final

import numpy as np

from outrider.forecast.questions import Questions
from outrider.forecast.queue_state import Floats
from outrider.forecast.recalibration import (
    LEVELS,
    as_log,
    censoring_weights,
    few_per_moment,
)

REFIT_S: Final = 7 * 86400.0
MAX_QUESTIONS: Final = 6000
"""Number of the last questions that it learns from."""
MIN_ANSWERS: Final = 200
"""Minimal number of answers for a model."""
_MISSING: Final = -1.0
_NEVER: Final = 1e12


def learned_quantiles(questions: Questions, from_s: Floats) -> Floats:
    """Return (questions, 3) quantiles of the wait, on the scale of `as_log`; nan: no model.

    Args:
        questions: of one kind.
        from_s: (weeks,) times at which the model is fitted again, for the questions of the
            `REFIT_S` seconds after each.
    """
    out = np.full((len(questions), len(LEVELS)), np.nan)
    features = np.concatenate([as_log(questions.quantiles_s), questions.known], axis=1)
    features = np.nan_to_num(features, nan=_MISSING, posinf=_NEVER)  # a column may have no value
    few = few_per_moment(questions.asked_s)
    asked_s, wait_s = questions.asked_s[few], questions.wait_s[few]
    for now_s in from_s.tolist():
        begin, end = np.searchsorted(questions.asked_s, [now_s, now_s + REFIT_S])
        until = int(np.searchsorted(asked_s, now_s))
        last = slice(max(0, until - MAX_QUESTIONS), until)
        seen, weights = censoring_weights(now_s - asked_s[last], wait_s[last])
        if seen.sum() < MIN_ANSWERS or begin == end:
            continue
        rows = few[last][seen]
        wanted = as_log(questions.wait_s[rows])
        for place, level in enumerate(LEVELS):
            out[begin:end, place] = _predicted(
                level, features[rows], wanted, weights, features[begin:end]
            )
    return np.sort(out, axis=1)


def _predicted(
    level: float, features: Floats, wanted: Floats, weights: Floats, asked: Floats
) -> Floats:
    """Return (asked,) a quantile by a model of these features, fitted in a single thread."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes a second to load
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        loss="quantile", quantile=level, max_iter=60, max_leaf_nodes=15, min_samples_leaf=30,
        max_bins=64, early_stopping=False, random_state=0,
    )  # fmt: skip
    with threadpool_limits(1):
        predicted: Floats = model.fit(features, wanted, sample_weight=weights).predict(asked)
    return predicted
