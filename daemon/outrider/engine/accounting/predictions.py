"""Predictions scored: is what a policy says of the chance and the length of a run true?

Eviction probabilities are scored by the Brier score, the mean squared difference between the
probability and what happened (1 evicted, 0 completed). Its reference is that of a forecaster who
always says the observed rate o: o (1 - o); the skill is 1 - score / reference (Murphy 1973).
Run lengths are scored by the mean absolute error, over the runs that completed their job.
"""

from math import inf
from typing import Any, Final

from outrider.api.prediction import Prediction
from outrider.engine.accounting.scores import HALF_LIFE_S, Bins, Score
from outrider.engine.state.packing import pack, unpack
from outrider.model.outcomes import COMPLETED_RUN, REMOVED_RUN

CHANCE_BOUNDS: Final = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)
CHANCE_BINS: Final = tuple(f"{n / 10:.1f}-{(n + 1) / 10:.1f}" for n in range(10))
RUN_BOUNDS_S: Final = (900.0, 1800.0, 3600.0, 7200.0, 14400.0, 28800.0, 57600.0, 86400.0)
RUN_BINS: Final = (
    "0-0.25 h", "0.25-0.5 h", "0.5-1 h", "1-2 h", "2-4 h", "4-8 h", "8-16 h", "16-24 h", "24 h-",
)  # fmt: skip
WINDOWS: Final = ("all", "recent")
BY_COMMAND: Final = frozenset({"removed", "held", "killed"})
"""Reasons of runs that ended because somebody wanted it, which no policy is asked to foresee. A
job that is gone for an unknown reason may be one of those: it is not scored either."""


class Predictions:
    """What one policy predicted of the runs, kept until they end and scored then.

    Attributes:
        open: predictions of the runs that are going on, by job number.
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
        """A run begins. Raises `ValueError` if what is predicted of it cannot be."""
        if prediction is None:
            return
        chance, run_s = prediction
        if chance is not None and not 0.0 <= chance <= 1.0:
            raise ValueError(f"eviction_probability = {chance!r}: right would be 0 to 1, or None")
        if run_s is not None and not 0.0 <= run_s < inf:
            raise ValueError(f"predicted run_s = {run_s!r}: right would be seconds >= 0, or None")
        self.open[job] = prediction

    def score(self, job: int, ending: str, reason: str, run_s: float, now: float) -> None:
        """A run ended: compare, if anything was predicted of it."""
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
        """The ``calibration`` object of reports and of the status."""
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
        """Everything as plain data."""
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
        """Go on from what `save` gave."""
        self.open = {job: Prediction(*values) for job, *values in unpack(saved["open"])}
        self.neither = saved["neither"]
        self.evictions.restore(saved["evictions"])
        self.run_s.restore(saved["run_s"])


def _with_skill(bins: Bins) -> dict[str, Any]:
    """The report of eviction probabilities: Brier score, its reference, and the skill."""
    out = bins.report(CHANCE_BINS, "brier")
    rate = out["observed"]
    reference = None if rate is None else rate * (1.0 - rate)
    skill = 1.0 - out["brier"] / reference if reference else None
    return out | {"reference": reference, "skill": skill}
