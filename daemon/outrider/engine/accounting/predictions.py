"""Scores of predictions: eviction probability and run length against what happened.

Eviction probabilities are scored by the Brier score, the mean squared difference between the
probability and what happened (1 evicted, 0 completed). Its reference is that of a forecaster who
always predicts the observed rate o: o (1 - o); the skill is 1 - score / reference (Murphy 1973).
Run lengths are scored by the mean absolute error, over the runs that completed their job.
"""

from collections.abc import Sequence
from math import exp2, inf
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Prediction
from outrider.engine.state.packing import pack, unpack
from outrider.model.decisions import COMPLETED_RUN, REMOVED_RUN

# -- scores ----------------------------------------------------------------------------------------
# Scores: predicted and observed values, in bins, in total and with the past fading.

Floats = NDArray[np.float64]

HALF_LIFE_S: Final = 1_209_600.0
"""Half-life of a scored run, seconds: two weeks.

Long enough for a week's rhythm not to look like drift, short enough for drift to show within a
month."""
_MAX_DOUBLINGS: Final = 400.0
_COLUMNS: Final = 4
_MAX_WAITING: Final = 1024 * _COLUMNS


class Bins:
    """Predicted and observed values, in bins of the predicted value.

    Attributes:
        n: runs in each bin, or their weights.
        predicted, observed: sums in each bin.
        error: sum of all errors.
    """

    __slots__ = ("error", "n", "observed", "predicted")

    def __init__(self, size: int) -> None:
        self.n: list[float] = [0] * size
        self.predicted = [0.0] * size
        self.observed = [0.0] * size
        self.error = 0.0

    def plus(
        self, k: NDArray[np.intp], predicted: Floats, observed: Floats, error: Floats,
        weight: NDArray[Any],
    ) -> "Bins":  # fmt: skip
        """Return these bins with more runs, each in its bin and by its weight.

        They are added one after the other, so the result does not depend on the size of a batch.
        """
        made = Bins(len(self.n))
        made.n = _added(self.n, k, weight)
        made.predicted = _added(self.predicted, k, weight * predicted)
        made.observed = _added(self.observed, k, weight * observed)
        (made.error,) = _added([self.error], np.zeros_like(k), weight * error)
        return made

    def scaled(self, ratio: float) -> "Bins":
        """Return these bins with every weight multiplied."""
        made = Bins(len(self.n))
        made.n = [n * ratio for n in self.n]
        made.predicted = [total * ratio for total in self.predicted]
        made.observed = [total * ratio for total in self.observed]
        made.error = self.error * ratio
        return made

    def report(self, names: Sequence[str], error_name: str) -> dict[str, Any]:
        """Return the means over all bins and in each; None where there was no run."""
        n = sum(self.n)
        rows = zip(names, self.n, self.predicted, self.observed, strict=True)
        return {
            "n": n,
            "predicted": _mean(sum(self.predicted), n),
            "observed": _mean(sum(self.observed), n),
            error_name: _mean(self.error, n),
            "bins": [
                {"bin": name, "n": m, "predicted": _mean(p, m), "observed": _mean(o, m)}
                for name, m, p, o in rows
            ],
        }

    def save(self) -> list[Any]:
        """Return everything as plain data."""
        return [list(self.n), list(self.predicted), list(self.observed), self.error]

    @classmethod
    def restore(cls, saved: list[Any]) -> "Bins":
        """Rebuild what `save` described."""
        made = cls(len(saved[0]))
        made.n, made.predicted, made.observed = (list(column) for column in saved[:3])
        made.error = saved[3]
        return made


class Score:
    """Score of one predicted quantity, since the beginning and with older runs fading.

    Runs end far more often than the score is read, so a run is only recorded, and many are counted
    together. Reading includes all of them, but changes nothing: metrics are read while another
    thread makes a snapshot.

    Args:
        bounds: borders between bins of predicted values, ascending.
    """

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._all = Bins(len(bounds) + 1)
        # in a measure that doubles every half-life, so that nothing must be brought forward
        self._fading = Bins(len(bounds) + 1)
        self._fade_from_s = 0.0
        self._waiting: list[float] = []  # of each run: predicted, observed, error, fading weight

    def add(self, predicted: float, observed: float, error: float, now: float) -> None:
        """Score one run that ended now."""
        age = (now - self._fade_from_s) / HALF_LIFE_S
        if age > _MAX_DOUBLINGS:
            self._count()
            self._fading, self._fade_from_s, age = self._fading.scaled(exp2(-age)), now, 0.0
        waiting = self._waiting
        waiting += (predicted, observed, error, exp2(age))
        if len(waiting) >= _MAX_WAITING:
            self._count()

    def _count(self) -> None:
        self._all, self._fading = self._counted()
        self._waiting.clear()

    def _counted(self) -> tuple[Bins, Bins]:
        """Return all runs so far, and the same with older ones fading."""
        waiting = self._waiting
        rows = np.fromiter(waiting, np.float64, len(waiting)).reshape(-1, _COLUMNS)
        predicted, observed, error, weight = rows.T
        k = np.searchsorted(self._bounds, predicted, side="right")
        once = np.ones(len(k), dtype=np.intp)
        return (
            self._all.plus(k, predicted, observed, error, once),
            self._fading.plus(k, predicted, observed, error, weight),
        )

    @property
    def all(self) -> Bins:
        """Bins of all runs so far, each counting one."""
        return self._counted()[0]

    def recent(self, now: float) -> Bins:
        """Return the runs so far, halving each one's weight per half-life since it ended."""
        return self._counted()[1].scaled(exp2((self._fade_from_s - now) / HALF_LIFE_S))

    def save(self) -> list[Any]:
        """Return everything as plain data."""
        return [*(bins.save() for bins in self._counted()), self._fade_from_s]

    def restore(self, saved: list[Any]) -> None:
        """Resume from what `save` returned."""
        self._all, self._fading = Bins.restore(saved[0]), Bins.restore(saved[1])
        self._fade_from_s = saved[2]
        self._waiting.clear()


def _added(totals: list[float], k: NDArray[np.intp], values: NDArray[Any]) -> list[float]:
    """Return the totals, each with its own values added, in their order."""
    added = np.array(totals, dtype=values.dtype)
    np.add.at(added, k, values)
    made: list[float] = added.tolist()
    return made


def _mean(total: float, n: float) -> float | None:
    return total / n if n else None


# -- predictions -----------------------------------------------------------------------------------

CHANCE_BOUNDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CHANCE_BINS: Final = tuple(f"{n / 10:.1f}-{(n + 1) / 10:.1f}" for n in range(10))
RUN_BOUNDS_S: Final = (900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 57600.0, 86400.0)
RUN_BINS: Final = (
    "0-0.25 h", "0.25-0.5 h", "0.5-1 h", "1-2 h", "2-4 h", "4-8 h", "8-16 h", "16-24 h", "24 h-",
)  # fmt: skip
WINDOWS: Final = ("all", "recent")
BY_COMMAND: Final = frozenset({"removed", "held", "killed"})
"""Reasons of runs ended by a person, which no policy has to predict.

A job that is gone for an unknown reason may be one of those: it is not scored either."""


class Predictions:
    """Predictions of one policy, kept until the runs end and scored then.

    Attributes:
        open: predictions of the current runs, by job number.
        neither: runs predicted that neither completed nor were evicted, and are not scored.
        evictions: eviction probabilities against 1 (evicted) or 0; errors squared.
        run_s: run lengths in seconds, of runs that completed; absolute errors.
    """

    def __init__(self) -> None:
        self.open: dict[int, Prediction] = {}
        self.neither = 0
        self.evictions = Score(CHANCE_BOUNDS)
        self.run_s = Score(RUN_BOUNDS_S)

    def keep(self, job: int, prediction: Prediction | None) -> None:
        """Store the prediction of a run that begins. Raises `ValueError` if it is invalid."""
        if prediction is None:
            return
        chance, run_s = prediction
        if chance is not None and not 0.0 <= chance <= 1.0:
            raise ValueError(f"eviction_probability = {chance!r}: expected 0 to 1, or None")
        if run_s is not None and not 0.0 <= run_s < inf:
            raise ValueError(f"predicted run_s = {run_s!r}: expected seconds >= 0, or None")
        self.open[job] = prediction

    def score(self, job: int, ending: str, reason: str, run_s: float, now: float) -> None:
        """Score a run that ended, if there is a prediction of it."""
        prediction = self.open.pop(job, None)
        if prediction is None:
            return
        if reason in BY_COMMAND or (ending == REMOVED_RUN and reason == "unknown"):
            self.neither += 1
            return
        chance, expected_s = prediction
        evicted = ending != COMPLETED_RUN
        if chance is not None:
            self.evictions.add(float(chance), float(evicted), float(chance - evicted) ** 2, now)
        if expected_s is not None and not evicted:
            self.run_s.add(float(expected_s), run_s, abs(float(expected_s) - run_s), now)

    def report(self, now: float) -> dict[str, Any]:
        """Return the ``calibration`` object of reports and of the status."""
        evictions = {"all": self.evictions.all, "recent": self.evictions.recent(now)}
        lengths = {"all": self.run_s.all, "recent": self.run_s.recent(now)}
        return {
            "half_life_s": HALF_LIFE_S,
            "open": len(self.open),
            "neither": self.neither,
            "evictions": {w: _with_skill(bins) for w, bins in evictions.items()},
            "run_s": {
                w: bins.report(RUN_BINS, "mean_absolute_error") for w, bins in lengths.items()
            },
        }

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "open": pack(
                (job, *(None if value is None else float(value) for value in prediction))
                for job, prediction in self.open.items()
            ),
            "neither": self.neither,
            "evictions": self.evictions.save(),
            "run_s": self.run_s.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self.open = {job: Prediction(*values) for job, *values in unpack(saved["open"])}
        self.neither = saved["neither"]
        self.evictions.restore(saved["evictions"])
        self.run_s.restore(saved["run_s"])


def _with_skill(bins: Bins) -> dict[str, Any]:
    """Return the report of eviction probabilities: Brier score, its reference, and the skill."""
    out = bins.report(CHANCE_BINS, "brier")
    rate = out["observed"]
    reference = None if rate is None else rate * (1.0 - rate)
    skill = 1.0 - out["brier"] / reference if reference else None
    return out | {"reference": reference, "skill": skill}
