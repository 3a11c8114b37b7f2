"""Sample-average values of the arms of a bandit, one row per state."""

from collections.abc import Sequence
from typing import Any


class Arms:
    """Mean reward of each arm in one state: q(s, a) of McGough and Forshaw, equation 3.

    Untried arms are valued 0 (their section 4.4.3): better than any that only disappointed,
    worse than any that proved good. `values` is kept so that choosing needs no division.
    """

    __slots__ = ("_ranked", "counts", "sums", "values")

    def __init__(self, n: int) -> None:
        self.sums = [0.0] * n
        self.counts = [0] * n
        self.values = [0.0] * n
        self._ranked: list[int] | None = None

    def grow(self, n: int) -> None:
        """New arms have appeared; they are untried."""
        more = n - len(self.values)
        self.sums.extend([0.0] * more)
        self.counts.extend([0] * more)
        self.values.extend([0.0] * more)
        self._ranked = None

    def learn(self, arm: int, reward: float) -> None:
        """Take one more reward into the mean."""
        self.sums[arm] += reward
        self.counts[arm] += 1
        self.values[arm] = self.sums[arm] / self.counts[arm]
        self._ranked = None

    def ranked(self) -> list[int]:
        """All arms, the best first.

        Kept until something is learned: many alike jobs are decided in between.
        """
        if self._ranked is None:
            values = self.values
            last_first = range(len(values) - 1, -1, -1)
            self._ranked = sorted(last_first, key=values.__getitem__, reverse=True)
        return self._ranked

    def save(self) -> list[list[float]]:
        """Sums and counts, as plain data."""
        return [self.sums, [float(n) for n in self.counts]]

    @classmethod
    def restore(cls, saved: Sequence[Sequence[Any]], arms: Sequence[int], n: int) -> "Arms":
        """Rebuild from `save`; `arms[i]` is today's position of saved arm i, of `n` in all."""
        made = cls(n)
        for arm, total, count in zip(arms, *saved, strict=True):
            made.sums[arm], made.counts[arm] = float(total), int(count)
            made.values[arm] = made.sums[arm] / made.counts[arm] if count else 0.0
        return made
