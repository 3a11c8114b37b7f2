"""A quantile model that learns what the simulated rule does not tell.

Where the batch system's rule is not the one that is run forward, the replicates' quantiles are
biased, but still know much of the queue. Gradient boosting of the quantile loss takes them and what
else was known as features. It is fitted anew each week, from what was answered by then.
"""

from typing import Final

import numpy as np

from outrider.forecast.questions import Questions
from outrider.forecast.queue_state import Floats
from outrider.forecast.recalibration import (
    LEVELS,
    as_log,
    censoring_weights,
    few_a_moment,
)

REFIT_S: Final = 7 * 86400.0
LAST: Final = 6000
"""From how many of the last questions it learns."""
LEAST: Final = 200
"""With fewer answers there is no model."""
_NOT_SAID: Final = -1.0
_NEVER: Final = 1e12


def learned_quantiles(questions: Questions, from_s: Floats) -> Floats:
    """(questions, 3) quantiles of the wait, as of `as_log`; nan where there is no model.

    Args:
        questions: of one kind.
        from_s: (weeks,) moments at which the model is fitted anew; for what is asked in the
            `REFIT_S` seconds after each.
    """
    out = np.full((len(questions), len(LEVELS)), np.nan)
    features = np.concatenate([as_log(questions.quantiles_s), questions.known], axis=1)
    features = np.nan_to_num(features, nan=_NOT_SAID, posinf=_NEVER)  # a column may have no value
    few = few_a_moment(questions.asked_s)
    asked_s, wait_s = questions.asked_s[few], questions.wait_s[few]
    for now_s in from_s.tolist():
        begin, end = np.searchsorted(questions.asked_s, [now_s, now_s + REFIT_S])
        until = int(np.searchsorted(asked_s, now_s))
        last = slice(max(0, until - LAST), until)
        seen, weights = censoring_weights(now_s - asked_s[last], wait_s[last])
        if seen.sum() < LEAST or begin == end:
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
    """(asked,) a quantile, by a model of these features. One thread: it runs beside other work."""
    from sklearn.ensemble import HistGradientBoostingRegressor  # takes a second to load
    from threadpoolctl import threadpool_limits

    model = HistGradientBoostingRegressor(
        loss="quantile", quantile=level, max_iter=60, max_leaf_nodes=15, min_samples_leaf=30,
        max_bins=64, early_stopping=False, random_state=0,
    )  # fmt: skip
    with threadpool_limits(1):
        predicted: Floats = model.fit(features, wanted, sample_weight=weights).predict(asked)
    return predicted
