"""How often a bandit explores: equation 6's epsilon, which may vary (section 4.4.2)."""

from collections import deque
from typing import Any, NamedTuple


class Exploration(NamedTuple):
    """When to explore more than usual.

    Attributes:
        epsilon: ratio of decisions drawn at random.
        first_epsilon: the ratio for the first `first_n` rewards of a state.
        first_n: see `first_epsilon`.
        divergence_ratio: explore more in a state if the mean of its last `divergence_n` rewards is
            below this ratio of the best reward seen there; None: never.
        divergence_n: see `divergence_ratio`.
        divergence_epsilon: added to epsilon then.
    """

    epsilon: float
    first_epsilon: float
    first_n: int
    divergence_ratio: float | None
    divergence_n: int
    divergence_epsilon: float


class ExplorationRate:
    """Epsilon of each state.

    Args:
        exploration: when to explore more.

    Attributes:
        varies: whether epsilon depends on the state.
    """

    def __init__(self, exploration: Exploration) -> None:
        self._terms = exploration
        self.varies = exploration.first_n > 0 or exploration.divergence_ratio is not None
        self._seen: dict[int, _RewardHistory] = {}

    def epsilon(self, state: int) -> float:
        """The probability of exploring in a state."""
        terms = self._terms
        seen = self._seen.get(state)
        if (0 if seen is None else seen.n) < terms.first_n:
            return terms.first_epsilon
        if seen is not None and self._diverges(seen):
            return min(1.0, terms.epsilon + terms.divergence_epsilon)
        return terms.epsilon

    def _diverges(self, seen: "_RewardHistory") -> bool:
        """Whether recent rewards fell; never if the best was not positive (no ratio defined)."""
        ratio, best = self._terms.divergence_ratio, seen.best
        if ratio is None or best <= 0 or len(seen.last) < self._terms.divergence_n:
            return False
        return sum(seen.last) / len(seen.last) < ratio * best

    def record(self, state: int, reward: float) -> None:
        """Record a reward of a state. Needed only if epsilon `varies`."""
        seen = self._seen.get(state)
        if seen is None:
            seen = self._seen[state] = _RewardHistory(self._terms.divergence_n)
        seen.n += 1
        seen.last.append(reward)
        if reward > seen.best:
            seen.best = reward

    def save(self) -> list[Any]:
        """Everything, as plain data."""
        return [[state, s.n, s.best, list(s.last)] for state, s in self._seen.items()]

    def restore(self, saved: list[Any]) -> None:
        """Go on from what `save` gave."""
        self._seen = {}
        for state, n, best, last in saved:
            seen = self._seen[state] = _RewardHistory(self._terms.divergence_n)
            seen.n, seen.best = n, best
            seen.last.extend(last)


class _RewardHistory:
    """Rewards of one state: how many, the best, and the last few."""

    __slots__ = ("best", "last", "n")

    def __init__(self, last_n: int) -> None:
        self.n = 0
        self.best = -1.0
        self.last: deque[float] = deque(maxlen=last_n)
