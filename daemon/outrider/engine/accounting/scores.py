"""Scores: what was predicted beside what was observed, in bins, now and with the past fading."""

from collections.abc import Sequence
from math import exp2
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

HALF_LIFE_S: Final = 1_209_600.0
"""A scored run counts half after two weeks: long enough for a week's rhythm not to look like
drift, short enough for drift to show within a month."""
_MOST_DOUBLINGS: Final = 400.0
_COLUMNS: Final = 4
_MOST_WAITING: Final = 1024 * _COLUMNS


class Bins:
    """Predicted beside observed values, in bins of what was predicted.

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
        """The same with more runs, each in its bin and by its weight.

        They are added one after the other, so it does not matter how many come at once.
        """
        made = Bins(len(self.n))
        made.n = _added(self.n, k, weight)
        made.predicted = _added(self.predicted, k, weight * predicted)
        made.observed = _added(self.observed, k, weight * observed)
        (made.error,) = _added([self.error], np.zeros_like(k), weight * error)
        return made

    def scaled(self, ratio: float) -> "Bins":
        """The same with every weight multiplied."""
        made = Bins(len(self.n))
        made.n = [n * ratio for n in self.n]
        made.predicted = [total * ratio for total in self.predicted]
        made.observed = [total * ratio for total in self.observed]
        made.error = self.error * ratio
        return made

    def report(self, names: Sequence[str], error_name: str) -> dict[str, Any]:
        """Means over all bins and in each; None where there was no run."""
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
        """Everything as plain data."""
        return [list(self.n), list(self.predicted), list(self.observed), self.error]

    @classmethod
    def restore(cls, saved: list[Any]) -> "Bins":
        """Rebuild what `save` described."""
        made = cls(len(saved[0]))
        made.n, made.predicted, made.observed = (list(column) for column in saved[:3])
        made.error = saved[3]
        return made


class Score:
    """One predicted quantity, scored since the beginning and with older runs fading.

    Runs end far more often than anybody asks how true the predictions were, so a run is only
    noted, and many are counted at once. Who asks gets all of them, but changes nothing: metrics
    are read while another thread makes a snapshot.

    Args:
        bounds: where a bin of predicted values ends and the next begins, ascending.
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
        if age > _MOST_DOUBLINGS:
            self._count()
            self._fading, self._fade_from_s, age = self._fading.scaled(exp2(-age)), now, 0.0
        waiting = self._waiting
        waiting += (predicted, observed, error, exp2(age))
        if len(waiting) >= _MOST_WAITING:
            self._count()

    def _count(self) -> None:
        self._all, self._fading = self._counted()
        self._waiting.clear()

    def _counted(self) -> tuple[Bins, Bins]:
        """All runs so far, and the same fading."""
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
        """The runs so far, each counting one."""
        return self._counted()[0]

    def recent(self, now: float) -> Bins:
        """The runs so far, each counting half for every half-life that passed since it ended."""
        return self._counted()[1].scaled(exp2((self._fade_from_s - now) / HALF_LIFE_S))

    def save(self) -> list[Any]:
        """Everything as plain data."""
        return [*(bins.save() for bins in self._counted()), self._fade_from_s]

    def restore(self, saved: list[Any]) -> None:
        """Go on from what `save` gave."""
        self._all, self._fading = Bins.restore(saved[0]), Bins.restore(saved[1])
        self._fade_from_s = saved[2]
        self._waiting.clear()


def _added(totals: list[float], k: NDArray[np.intp], values: NDArray[Any]) -> list[float]:
    """Totals, and to each of them the values of its own, in their order."""
    added = np.array(totals, dtype=values.dtype)
    np.add.at(added, k, values)
    made: list[float] = added.tolist()
    return made


def _mean(total: float, n: float) -> float | None:
    return total / n if n else None
