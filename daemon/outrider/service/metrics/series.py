"""One time series: a number that grows or moves, or the spread of many observations.

`prefix` is everything of an exposition line before its value, made once. A render then only
formats numbers.
"""

import math
from bisect import bisect_left
from collections.abc import Callable, Sequence
from typing import Self, SupportsFloat

from outrider.service.metrics.declarations import Kind, Metric


def plain(value: SupportsFloat | None) -> float:
    """A number of Python's own: numpy's do not print as numbers, and None is nan."""
    if type(value) is float or type(value) is int:
        return value
    return math.nan if value is None else float(value)


class Gauge:
    """A number that may go anywhere."""

    __slots__ = ("prefix", "value")

    def __init__(self, prefix: str, begin: float) -> None:
        self.prefix = prefix
        self.value = begin

    def set(self, value: SupportsFloat | None) -> None:
        """Set it; None means unknown and shows as NaN."""
        self.value = plain(value)

    def inc(self, amount: SupportsFloat = 1) -> None:
        """Add to it."""
        self.value += plain(amount)

    def show_sum_of(self, members: Sequence[Self]) -> None:
        """Show what several series hold together."""
        self.value = sum(member.value for member in members)


class Counter(Gauge):
    """A number that only grows. The accounting is the truth: `set` mirrors its total.

    Args:
        refuse: called instead of going backwards, which a server would take for a restart.
    """

    __slots__ = ("_refuse",)

    def __init__(self, prefix: str, begin: float, refuse: Callable[[], None]) -> None:
        super().__init__(prefix, begin)
        self._refuse = refuse

    def set(self, value: SupportsFloat | None) -> None:
        """Mirror a total; a smaller one than before is refused and counted, not shown."""
        total = plain(value)
        if total < self.value:
            self._refuse()
        else:
            self.value = total

    def inc(self, amount: SupportsFloat = 1) -> None:
        """Add to it. Raises `ValueError` for a negative amount."""
        more = plain(amount)
        if more < 0:
            raise ValueError(f"{self.prefix.strip()}: a counter cannot grow by {more!r}")
        self.value += more


class Spread:
    """Count, sum and, for a histogram, buckets of observed values.

    A summary is a spread with the one bucket that takes everything.

    Attributes:
        prefixes: of its lines: one for each bucket of a histogram, then count, then sum.
        buckets: observations in each bucket, not cumulative; the last has no bound.
        sum: of all observed values.
    """

    __slots__ = ("_bounds", "_refuse", "_signed", "buckets", "prefixes", "sum")

    def __init__(
        self, prefixes: tuple[str, ...], metric: Metric, refuse: Callable[[], None]
    ) -> None:
        self.prefixes = prefixes
        self._bounds = metric.bounds
        self._signed = metric.kind is Kind.SUMMARY
        self._refuse = refuse
        self.buckets = [0] * (len(metric.bounds) + 1)
        self.sum: float = 0.0

    def observe(self, value: SupportsFloat) -> None:
        """Count one value. Raises `ValueError` for nan, or below 0 in a histogram."""
        number = self._checked(value)
        self.buckets[bisect_left(self._bounds, number)] += 1
        self.sum += number

    def set(self, buckets: Sequence[int], total: SupportsFloat) -> None:
        """Mirror an accounting's buckets (not cumulative) and sum.

        Fewer observations than before are refused and counted, as for a counter.

        Raises:
            ValueError: not as many buckets as were declared, or an impossible sum.
        """
        if len(buckets) != len(self.buckets):
            raise ValueError(
                f"{self.prefixes[-1].strip()}: {len(buckets)} buckets given, "
                f"{len(self.buckets)} declared (the last has no bound)"
            )
        if sum(buckets) < sum(self.buckets):
            self._refuse()
            return
        self.sum = self._checked(total)
        self.buckets = list(map(int, buckets))

    def show_sum_of(self, members: Sequence[Self]) -> None:
        """Show what several series hold together."""
        columns = zip(*(member.buckets for member in members), strict=True)
        self.buckets = [sum(column) for column in columns]
        self.sum = sum(member.sum for member in members)

    def _checked(self, value: SupportsFloat) -> float:
        number = plain(value)
        if math.isnan(number) or (number < 0 and not self._signed):
            wanted = "any number" if self._signed else "a number from 0 up"
            raise ValueError(f"{self.prefixes[-1].strip()}: {number!r} given, not {wanted}")
        return number
