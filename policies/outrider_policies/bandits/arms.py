"""Values of the arms of a bandit, one object per state; only arms that were tried are stored."""

from bisect import bisect_left, insort
from collections import deque
from collections.abc import Iterator, Sequence
from math import exp, inf
from operator import mul
from typing import Any

from outrider_policies.levels import QUEUE, Openness

_NONE = -inf
"""A value below that of any arm."""


class Arms:
    """Learned values of places and of the queue in one state.

    Untried arms are not stored. Tried places are kept sorted by value, so that the best open one
    is found in a few steps among thousands.

    Attributes:
        values: q(s, a), the value of each arm that was tried.
    """

    __slots__ = ("_ranked", "values")

    def __init__(self) -> None:
        self.values: dict[int, float] = {}
        self._ranked: list[tuple[float, int]] = []

    def learn(self, arm: int, reward: float) -> None:
        """Update the value of an arm with a reward."""
        raise NotImplementedError

    def _set(self, arm: int, value: float) -> None:
        """Set the value of an arm, and sort a place by it."""
        values, ranked = self.values, self._ranked
        if arm != QUEUE:
            if arm in values:
                del ranked[bisect_left(ranked, (values[arm], arm))]
            insort(ranked, (value, arm))
        values[arm] = value

    def best(self, is_open: Openness, may_defer: bool) -> tuple[float, list[int]]:
        """Return the highest value among tried arms that can be chosen, and all arms that have it.

        ``(-inf, [])`` if there are none. Among equals the queue is last.
        """
        queue = self.values.get(QUEUE, _NONE) if may_defer else _NONE
        best, arms = queue, []
        for value, arm in reversed(self._ranked):
            if value < best:
                break
            if is_open[arm]:
                best = value
                arms.append(arm)
        if queue == best and best != _NONE:
            arms.append(QUEUE)
        return best, arms

    def ranked(self) -> Iterator[tuple[float, int]]:
        """Yield (value, place) of all tried places, the best first."""
        return reversed(self._ranked)

    def seen_n(self) -> int:
        """Return the number of rewards behind the values."""
        raise NotImplementedError

    def save(self, arms: Sequence[int]) -> list[list[Any]]:
        """Return the state of these arms, in their order, as plain data."""
        raise NotImplementedError

    def restore(self, saved: Sequence[Sequence[Any]], arms: Sequence[int]) -> None:
        """Restore an empty row from `save`; `arms[i]` is the present number of saved arm i."""
        raise NotImplementedError


_NO_EVIDENCE = (0.0, 0)


class MeanArms(Arms):
    """Values that are means of all rewards: equation 3 of McGough and Forshaw."""

    __slots__ = ("_evidence",)

    def __init__(self) -> None:
        super().__init__()
        self._evidence: dict[int, tuple[float, int]] = {}

    def learn(self, arm: int, reward: float) -> None:
        """Add one more reward to the mean of an arm."""
        total, count = self._evidence.get(arm, _NO_EVIDENCE)
        total += reward
        count += 1
        self._evidence[arm] = total, count
        self._set(arm, total / count)

    def evidence(self, arm: int) -> tuple[float, int]:
        """Return the sum and number of an arm's rewards; zeros if untried."""
        return self._evidence.get(arm, _NO_EVIDENCE)

    def seen_n(self) -> int:
        """Return the number of rewards behind the values."""
        return sum(count for _, count in self._evidence.values())

    def save(self, arms: Sequence[int]) -> list[list[Any]]:
        """Return sums and counts; the integer 0 (one byte) for an untried arm."""
        evidence = [self._evidence.get(arm, (0, 0)) for arm in arms]
        return [[total for total, _ in evidence], [count for _, count in evidence]]

    def restore(self, saved: Sequence[Sequence[Any]], arms: Sequence[int]) -> None:
        """Restore an empty row from `save`; `arms[i]` is the present number of saved arm i."""
        for arm, total, count in zip(arms, *saved, strict=True):
            if count:
                self._evidence[arm] = float(total), int(count)
                self._set(arm, float(total) / int(count))


class RecentArms(Arms):
    """Values that are weighted means of an arm's last rewards (section 4.4.1, equation 7).

    Args:
        weights: (n,) of an arm's last n rewards, the most recent last. See `plain_weights` and
            `gaussian_weights`.
    """

    __slots__ = ("_recent", "_weights")

    def __init__(self, weights: Sequence[float]) -> None:
        super().__init__()
        self._weights = weights
        self._recent: dict[int, deque[float]] = {}

    def learn(self, arm: int, reward: float) -> None:
        """Add one more reward to the mean of an arm."""
        recent = self._recent.get(arm)
        if recent is None:
            recent = self._recent[arm] = deque(maxlen=len(self._weights))
        recent.append(reward)
        self._set(arm, self._mean(recent))

    def _mean(self, recent: Sequence[float]) -> float:
        weights = self._weights[-len(recent) :]
        total: float = sum(map(mul, weights, recent))
        return total / sum(weights)

    def seen_n(self) -> int:
        """Return the number of rewards behind the values."""
        return sum(map(len, self._recent.values()))

    def save(self, arms: Sequence[int]) -> list[list[Any]]:
        """Return the last rewards of each arm, the oldest first."""
        return [list(self._recent.get(arm, ())) for arm in arms]

    def restore(self, saved: Sequence[Sequence[Any]], arms: Sequence[int]) -> None:
        """Restore an empty row from `save`; `arms[i]` is the present number of saved arm i."""
        for arm, rewards in zip(arms, saved, strict=True):
            if rewards:
                self._recent[arm] = deque(map(float, rewards), maxlen=len(self._weights))
                self._set(arm, self._mean(self._recent[arm]))


def plain_weights(n: int) -> list[float]:
    """Return equal weights for the last n rewards."""
    return [1.0] * n


def gaussian_weights(n: int) -> list[float]:
    """Return exponential weights for the last n rewards, 1 for the most recent.

    Equation 8 as printed: ``exp(-8 (n - i) / n)`` for i = 1 to n. The paper calls it Gaussian;
    without a square in the exponent it is an exponential.
    """
    return [exp(-8.0 * (n - i) / n) for i in range(1, n + 1)]
