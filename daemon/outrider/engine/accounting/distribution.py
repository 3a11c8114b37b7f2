"""Distributions of waits, overheads and slowdowns: exact for reports, buckets for metrics."""

from array import array
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

WAIT_BOUNDS_S: Final = (
    1.0, 5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 86400.0,
    172800.0, 604800.0,
)  # fmt: skip
"""Upper bounds of the buckets of a wait, seconds: from a blink to a week."""

DECISION_BOUNDS_S: Final = (
    1e-05, 5e-05, 0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.02, 0.05, 0.1, 1.0,
)  # fmt: skip
"""Upper bounds of the buckets of a scheduling pass, seconds: from ten microseconds."""


class Distribution:
    """Sum and bucket counts of values; every value too where a report needs it.

    Args:
        exact: keep every value (8 bytes each), so that percentiles are exact.
        bounds: upper bounds of the buckets, ascending.
    """

    __slots__ = ("bounds", "buckets", "total", "values")

    def __init__(self, exact: bool, bounds: Sequence[float] = WAIT_BOUNDS_S) -> None:
        self.bounds = bounds
        self.buckets = [0] * (len(bounds) + 1)
        self.total = 0.0
        self.values: array[float] | None = array("d") if exact else None

    def add(self, value: float) -> None:
        """Count one value; store it where exact."""
        self.buckets[bisect_left(self.bounds, value)] += 1
        self.total += value
        if self.values is not None:
            self.values.append(value)

    def extend(self, values: NDArray[np.float64]) -> None:
        """Count many values; their sum is the same as if they were added one by one."""
        at = np.searchsorted(self.bounds, values)
        counts = np.bincount(at, minlength=len(self.buckets)).tolist()
        self.buckets = [n + more for n, more in zip(self.buckets, counts, strict=True)]
        self.total = float(np.add.accumulate(np.append(self.total, values))[-1])
        if self.values is not None:
            self.values.frombytes(values.tobytes())

    def merge(self, other: "Distribution") -> None:
        """Add the counts of another distribution."""
        self.buckets = [n + more for n, more in zip(self.buckets, other.buckets, strict=True)]
        self.total += other.total
        if self.values is not None and other.values is not None:
            self.values.extend(other.values)

    @property
    def n(self) -> int:
        """Number of values that were counted."""
        return sum(self.buckets)

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        values = None if self.values is None else self.values.tolist()
        return {"buckets": self.buckets, "total": self.total, "values": values}

    @classmethod
    def restore(cls, saved: dict[str, Any]) -> "Distribution":
        """Rebuild what `save` described."""
        made = cls(exact=saved["values"] is not None)
        made.buckets = list(saved["buckets"])
        made.total = saved["total"]
        if saved["values"] is not None:
            made.values = array("d", saved["values"])
        return made


def summary(parts: Iterable[Distribution], censored_n: int = 0) -> dict[str, float | int | None]:
    """Return mean, std (population), percentiles (linear interpolation), max, n and censored_n.

    The percentiles are median, p90, p95 and p99. Statistics are None where there is nothing to
    compute them from: no value, or, for all but the mean, a distribution with buckets only.
    """
    parts = list(parts)
    n = sum(part.n for part in parts)
    out: dict[str, float | int | None] = dict.fromkeys(
        ("mean", "std", "median", "p90", "p95", "p99", "max")
    )
    out |= {"n": n, "censored_n": censored_n}
    if n:
        out["mean"] = sum(part.total for part in parts) / n
    if n and all(part.values is not None for part in parts):
        values = np.concatenate([np.frombuffer(p.values) for p in parts if p.values])
        out["mean"] = float(values.mean())
        out["std"] = float(values.std())
        ranks = np.percentile(values, (50, 90, 95, 99))
        out |= dict(zip(("median", "p90", "p95", "p99"), map(float, ranks), strict=True))
        out["max"] = float(values.max())
    return out
