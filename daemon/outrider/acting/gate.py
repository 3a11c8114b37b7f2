"""The gate: whether a decision may be carried out. Pure code, the same in every mode.

In `observe` and `shadow` nothing is ever carried out; the gate still says what it would have
done, so that a site sees before it climbs how often a budget or a stale input would have said no.
"""

from collections import Counter, deque
from typing import Any, NamedTuple

ACT = "act"
MODE = "mode"
STALE = "stale_input"
BUDGET = "budget"


class Budget(NamedTuple):
    """Bounds of what may be carried out.

    Attributes:
        starts_per_minute: most starts within any 60 seconds of event time.
        stale_after_s: input older than this carries nothing.
    """

    starts_per_minute: float
    stale_after_s: float


class Bounds(NamedTuple):
    """Guards: figures past these demote the mode. None: that figure is not guarded."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness_least: float | None = None
    error_ratio: float | None = None


class Figures(NamedTuple):
    """What the guards look at, over the window they are told of. None: not known yet."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness: float | None = None
    error_ratio: float | None = None


class Gate:
    """Admits decisions within mode, freshness and budget, in this order."""

    def __init__(self, mode: str, budget: Budget) -> None:
        self.mode = mode
        self.budget = budget
        self.verdicts: Counter[str] = Counter()
        self._starts: deque[float] = deque()

    def admit(self, now_s: float, input_age_s: float) -> str:
        """The verdict on one start: `ACT`, or why not. In a mode that never acts: `MODE`.

        Freshness and budget are judged all the same and counted in `verdicts`.
        """
        verdict = self._judge(now_s, input_age_s)
        self.verdicts[verdict] += 1
        return verdict if self.mode in ("canary", "active") else MODE

    def _judge(self, now_s: float, input_age_s: float) -> str:
        if input_age_s > self.budget.stale_after_s:
            return STALE
        starts = self._starts
        while starts and starts[0] <= now_s - 60.0:
            starts.popleft()
        if len(starts) + 1 > self.budget.starts_per_minute:
            return BUDGET
        starts.append(now_s)
        return ACT

    def save(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"verdicts": dict(self.verdicts), "starts": list(self._starts)}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.verdicts = Counter(saved["verdicts"])
        self._starts = deque(saved["starts"])


def breaches(bounds: Bounds, figures: Figures) -> list[str]:
    """Which guards a site's figures break, in words; empty if none."""
    found = []
    for name, bound, value, sign in (
        ("mean wait", bounds.mean_wait_s, figures.mean_wait_s, 1),
        ("badput ratio", bounds.badput_ratio, figures.badput_ratio, 1),
        ("fairness", bounds.fairness_least, figures.fairness, -1),
        ("error ratio", bounds.error_ratio, figures.error_ratio, 1),
    ):
        if bound is not None and value is not None and sign * (value - bound) > 0:
            word = "above" if sign > 0 else "below"
            found.append(f"{name} {value:g} is {word} its bound {bound:g}")
    return found
