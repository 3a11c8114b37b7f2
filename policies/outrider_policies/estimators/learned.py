"""Estimator ``learned``: median and range of the run times of similar jobs."""

import random
from collections.abc import Sequence
from math import exp, floor, log, log2
from typing import Annotated, Any, ClassVar, Final, NamedTuple

import msgspec
import numpy as np
from msgspec import Meta

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator
from outrider_policies.estimators.context_histograms import ContextHistograms, Floats, Level

TARGETS: Final = (0.1, 0.5, 0.9)
_LEVEL_STEP: Final = 0.0005
"""Step of the quantile correction: small, because hundreds of similar jobs end within a minute."""
_WARM_UP_JOBS: Final = 10
"""Completions before the first estimate."""
_MAX_OPEN: Final = 50_000
"""Maximum of estimates kept for jobs that have not ended.

The oldest are dropped first, because removed jobs are never reported.
"""


class LearnedSettings(PolicySettings, frozen=True):
    """Settings of the estimator `LearnedRunTimes`."""

    contexts: Annotated[
        int,
        Meta(ge=100, le=1_000_000, description="Maximum of users, requests and so on remembered of "
             "each kind; less than 1 kB each in memory, in ten kinds."),
    ] = 4096  # fmt: skip


class _IssuedEstimate(msgspec.Struct):
    """The estimate issued for jobs that have not ended and have equal specifications."""

    requested_s: float | None
    quantiles: tuple[float, float, float]
    jobs: int


class LearnedRunTimes(RunTimeEstimator):
    """Estimator that learns the distribution of run times online.

    `RunTimeDistributions` predicts the bin of the logarithm of the run time from the class, VO,
    user, request and CPUs, with long and short memories, and learns how to weight them.
    `QuantileLevels` moves the quantiles until eight of ten run times lie in the range. An estimate
    costs some 45 microseconds, independent of what was learned.

    It learns from jobs when they end. Jobs still running are not used, so long jobs are learned
    late.
    """

    name: ClassVar[str] = "learned"
    description: ClassVar[str] = "Learns from user, VO, request, CPUs and past jobs; with a range."
    api_version = 1
    settings_type: ClassVar[type[PolicySettings]] = LearnedSettings

    def __init__(self, settings: LearnedSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._distributions = RunTimeDistributions(settings.contexts)
        self._quantiles = QuantileLevels(TARGETS, _LEVEL_STEP)
        # Keyed by the specification as `learn` gets it: its estimate_s is the issued median.
        self._open: dict[JobSpec, _IssuedEstimate] = {}

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """Return the three quantiles; None before ten jobs have ended."""
        if self._distributions.learned_n < _WARM_UP_JOBS:
            return None
        kind = Kind.of(spec, spec.estimate_s)
        low, median, high = self._quantiles_of(self._distributions.predict(kind))
        self._remember(spec, (low, median, high))
        return RunTimeEstimate(median, low, high)

    def _remember(self, spec: JobSpec, quantiles: tuple[float, float, float]) -> None:
        as_returned = msgspec.structs.replace(spec, estimate_s=quantiles[1])
        before = self._open.get(as_returned)
        jobs = 1 if before is None else before.jobs + 1
        self._open[as_returned] = _IssuedEstimate(spec.estimate_s, quantiles, jobs)
        if len(self._open) > _MAX_OPEN:
            del self._open[next(iter(self._open))]

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Learn a run time, and whether it was within the issued quantiles."""
        requested_s = job.spec.estimate_s
        issued = self._open.get(job.spec)
        if issued is not None:
            requested_s = issued.requested_s
            self._quantiles.learn(run_s, issued.quantiles)
            issued.jobs -= 1
            if not issued.jobs:
                del self._open[job.spec]
        self._distributions.learn(Kind.of(job.spec, requested_s), run_s)

    def _quantiles_of(self, probabilities: Any) -> tuple[float, float, float]:
        """Return quantiles of the distribution, seconds; log-uniform within a bin."""
        reached = np.cumsum(probabilities)
        levels = self._quantiles.levels * reached[-1]
        found = np.searchsorted(reached, levels)
        before = reached[found] - probabilities[found]
        places = found + (levels - before) / probabilities[found]
        low, median, high = (exp(place * BIN_WIDTH) for place in places.tolist())
        return low, median, high

    def save(self) -> dict[str, Any]:
        """Return histograms, quantile levels, and estimates of jobs that have not ended."""
        return self._distributions.save() | {
            "quantiles": self._quantiles.save(),
            "open": [
                [msgspec.to_builtins(spec), msgspec.to_builtins(issued)]
                for spec, issued in self._open.items()
            ],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if it has other bins or levels."""
        distributions = RunTimeDistributions(self.settings.contexts)
        distributions.restore(saved)
        self._quantiles.restore(saved["quantiles"])
        self._distributions = distributions
        self._open = {
            msgspec.convert(spec, JobSpec): msgspec.convert(issued, _IssuedEstimate)
            for spec, issued in saved["open"]
        }


# -- quantile levels -------------------------------------------------------------------------------
# Calibrated quantiles: levels that adapt until their coverage meets the targets.


class QuantileLevels:
    """Levels at which to evaluate a predicted distribution to get the target coverage.

    A tenth percentile is right if a tenth of the observations lies below it. If the distribution
    is too narrow or drifts, that fails; so each level is corrected by every observation (adaptive
    conformal inference: Gibbs and Candes, NeurIPS 2021, equation 2):

        level += step (target - [observed <= predicted])

    In the long run the coverage meets the target for any distribution, within the limits below.

    Args:
        targets: target coverage, ascending, each between 0 and 1.
        step: learning rate of the levels.

    Attributes:
        levels: (n,) present levels, ascending. Each stays between the midpoints to its neighbours'
            targets, and at least a tenth of the outer targets' distance away from 0 and 1.
    """

    def __init__(self, targets: Sequence[float], step: float) -> None:
        self.targets = np.array(targets)
        self.levels = self.targets.copy()
        self._step = step
        middles = (self.targets[1:] + self.targets[:-1]) / 2.0
        self._lowest = np.concatenate([self.targets[:1] / 10.0, middles])
        self._highest = np.concatenate([middles, 1.0 - (1.0 - self.targets[-1:]) / 10.0])

    def learn(self, observed: float, predicted: Sequence[float]) -> None:
        """Learn from one observation; `predicted`: (n,) quantiles that were issued for it."""
        met = observed <= np.asarray(predicted)
        moved = self.levels + self._step * (self.targets - met)
        self.levels = np.clip(moved, self._lowest, self._highest)

    def save(self) -> list[float]:
        """Return the levels as plain data."""
        levels: list[float] = self.levels.tolist()
        return levels

    def restore(self, saved: Sequence[Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if it has other targets."""
        if len(saved) != len(self.targets):
            raise ValueError(f"{len(saved)} quantile levels; expected {len(self.targets)}")
        self.levels = np.array(saved, dtype=np.float64)


# -- distributions ---------------------------------------------------------------------------------
# Run times of similar jobs: the whole distribution, learned from those that ended.

BINS: Final = 96
LONGEST_S: Final = 3e6
"""Upper end of the bins, which are even in the logarithm of the run time.

They reach from one second to five weeks; each is 17 % wide.
"""
BIN_WIDTH: Final = log(LONGEST_S) / BINS
MIDDLES_S: Final[Floats] = np.exp((np.arange(BINS) + 0.5) * BIN_WIDTH)
"""(BINS,) the middle of each bin, seconds."""
LEVELS: Final = (
    Level(0.9995, 5.0),  # class
    Level(0.999, 5.0),  # class, requested time to a factor of two
    Level(0.998, 5.0),  # class, requested time and CPUs to a factor of two
    Level(0.998, 8.0),  # class, requested time to the second
    Level(0.99, 8.0),  # class, VO, requested time to a factor of two
    Level(0.99, 8.0),  # class, user
    Level(0.8, 4.0),  # the same, short memory
    Level(0.98, 6.0),  # class, user, requested time to a factor of two
    Level(0.97, 6.0),  # class, user, requested time to the second, CPUs
    Level(0.7, 4.0),  # the same, short memory
)
_USER: Final = 5
"""Index of the level of the user."""


class Kind(NamedTuple):
    """Properties that jobs with the same predicted run times share: all that users specify."""

    job_class: str
    user: str
    vo: str
    requested_s: float | None
    cpus: int

    @classmethod
    def of(cls, spec: JobSpec, requested_s: float | None) -> "Kind":
        """Return the kind of a job.

        Args:
            spec: the job's specification.
            requested_s: the time that its user requested, even if it was estimated since.
        """
        return cls(spec.job_class, spec.user, spec.vo, requested_s, spec.cpus)


class RunTimeDistributions:
    """Distributions of run times by kind of job; see `ContextHistograms`.

    Args:
        contexts: maximum of users, requests and so on remembered of each kind.

    Attributes:
        learned_n: number of run times learned.
    """

    def __init__(self, contexts: int) -> None:
        self._contexts = contexts
        self._histograms = self._empty()
        self.learned_n = 0

    def _empty(self) -> ContextHistograms:
        return ContextHistograms(LEVELS, BINS, self._contexts, _USER)

    def predict(self, kind: Kind) -> Floats:
        """Return (BINS,) the probability of each bin; they sum to about 1."""
        return self._histograms.predict(_keys(kind))

    def learn(self, kind: Kind, run_s: float) -> None:
        """Learn that a job of this kind ran so long."""
        place = int(log(max(run_s, 1.0)) / BIN_WIDTH)
        self._histograms.learn(_keys(kind), min(place, BINS - 1))
        self.learned_n += 1

    def save(self) -> dict[str, Any]:
        """Return what was learned, as plain data."""
        return {"histograms": self._histograms.save(), "learned_n": self.learned_n}

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned. Raises `ValueError` if it has other bins or levels."""
        histograms = self._empty()
        histograms.restore(saved["histograms"])
        self._histograms = histograms
        self.learned_n = saved["learned_n"]


def _keys(kind: Kind) -> tuple[tuple[Any, ...], ...]:
    """Return the context keys of a kind, one for each of `LEVELS`."""
    job_class, user, requested_s = kind.job_class, kind.user, kind.requested_s
    size = floor(log2(kind.cpus))
    length = -1 if not requested_s else floor(log2(max(requested_s, 1.0)))
    like = (job_class, user, requested_s, kind.cpus)
    by_user = (job_class, user)
    return (
        (job_class,),
        (job_class, length),
        (job_class, length, size),
        (job_class, requested_s),
        (job_class, kind.vo, length),
        by_user,
        by_user,
        (job_class, user, length),
        like,
        like,
    )
