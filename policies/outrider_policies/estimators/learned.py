"""Estimator ``learned``: what jobs like this one took, told as a median and a range."""

import random
from math import exp, floor, log, log2
from typing import Annotated, Any, ClassVar, Final

import msgspec
import numpy as np
from msgspec import Meta

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator
from outrider_policies.estimators.context_histograms import ContextHistograms, Level
from outrider_policies.estimators.quantile_levels import QuantileLevels

BINS: Final = 96
LONGEST_S: Final = 3e6
"""Bins of run time are even in its logarithm, from a second to five weeks: 17 % wide."""
_WIDTH: Final = log(LONGEST_S) / BINS

LEVELS: Final = (
    Level(0.9995, 5.0),  # its class
    Level(0.999, 5.0),  # and what it asks for, to a factor of two
    Level(0.998, 5.0),  # and CPUs, to a factor of two
    Level(0.998, 8.0),  # what it asks for, to the second
    Level(0.99, 8.0),  # its VO, and what it asks for to a factor of two
    Level(0.99, 8.0),  # its user
    Level(0.8, 4.0),  # its user's last few
    Level(0.98, 6.0),  # its user, and what it asks for to a factor of two
    Level(0.97, 6.0),  # jobs just like it: user, request and CPUs
    Level(0.7, 4.0),  # the last few of those
)
_USER: Final = 5
"""The level of the user alone."""

TARGETS: Final = (0.1, 0.5, 0.9)
_LEVEL_STEP: Final = 0.0005
"""How fast quantiles are corrected: slowly, for hundreds of alike jobs end within a minute."""
_SPEECHLESS_JOBS: Final = 10
"""Completions before anything is said."""
_MOST_OPEN: Final = 50_000
"""Estimates kept until their job ends; the oldest go first. Removed jobs never end."""


class LearnedSettings(PolicySettings, frozen=True):
    """Settings of `LearnedRunTimes`."""

    contexts: Annotated[
        int,
        Meta(ge=100, le=1_000_000, description="Most users, requests and so on remembered of each "
             "kind; less than 1 kB each in memory, in ten kinds."),
    ] = 4096  # fmt: skip


class _Told(msgspec.Struct):
    """What was told of jobs that have not ended: of those alike, the same."""

    requested_s: float | None
    quantiles: tuple[float, float, float]
    jobs: int


class LearnedRunTimes(RunTimeEstimator):
    """Learns the distribution of run times on line, from the general to the special.

    The logarithm of the run time falls into bins; `ContextHistograms` foretells the bin from the
    job's class, VO, user, request and CPUs, with long and short memories of what ended before, and
    learns which of them to believe. `QuantileLevels` moves the quantiles until eight of ten run
    times lie in the range. An estimate costs some 45 microseconds, whatever was learned before.

    It learns when a job ends, from nothing that is later than that; what runs still is not known
    to it, so that long jobs are late to be learned of.
    """

    name: ClassVar[str] = "learned"
    description: ClassVar[str] = "Learns from user, VO, request, CPUs and past jobs; with a range."
    api_version = 1
    settings_type: ClassVar[type[PolicySettings]] = LearnedSettings

    def __init__(self, settings: LearnedSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self._histograms = ContextHistograms(LEVELS, BINS, settings.contexts, _USER)
        self._quantiles = QuantileLevels(TARGETS, _LEVEL_STEP)
        self._learned_n = 0
        # By the specification as it comes back, in which the estimate stands for the request.
        self._open: dict[JobSpec, _Told] = {}

    def estimate(self, spec: JobSpec, now: float) -> RunTimeEstimate | None:
        """The three quantiles; None before ten jobs have ended."""
        if self._learned_n < _SPEECHLESS_JOBS:
            return None
        low, median, high = self._read(self._histograms.predict(_keys(spec, spec.estimate_s)))
        self._remember(spec, (low, median, high))
        return RunTimeEstimate(median, low, high)

    def _remember(self, spec: JobSpec, quantiles: tuple[float, float, float]) -> None:
        comes_back = msgspec.structs.replace(spec, estimate_s=quantiles[1])
        alike = self._open.get(comes_back)
        jobs = 1 if alike is None else alike.jobs + 1
        self._open[comes_back] = _Told(spec.estimate_s, quantiles, jobs)
        if len(self._open) > _MOST_OPEN:
            del self._open[next(iter(self._open))]

    def learn(self, job: Job, run_s: float, now: float) -> None:
        """Take in how long it ran, and whether its estimate held."""
        requested_s = job.spec.estimate_s
        told = self._open.get(job.spec)
        if told is not None:
            requested_s = told.requested_s
            self._quantiles.learn(run_s, told.quantiles)
            told.jobs -= 1
            if not told.jobs:
                del self._open[job.spec]
        place = int(log(max(run_s, 1.0)) / _WIDTH)
        self._histograms.learn(_keys(job.spec, requested_s), min(place, BINS - 1))
        self._learned_n += 1

    def _read(self, probabilities: Any) -> tuple[float, float, float]:
        """Where the distribution reaches the levels: even in the logarithm within a bin."""
        reached = np.cumsum(probabilities)
        levels = self._quantiles.levels * reached[-1]
        found = np.searchsorted(reached, levels)
        before = reached[found] - probabilities[found]
        places = found + (levels - before) / probabilities[found]
        low, median, high = (exp(place * _WIDTH) for place in places.tolist())
        return low, median, high

    def save(self) -> dict[str, Any]:
        """Histograms, quantile levels, and estimates of jobs that have not ended."""
        return {
            "histograms": self._histograms.save(),
            "quantiles": self._quantiles.save(),
            "learned_n": self._learned_n,
            "open": [
                [msgspec.to_builtins(spec), msgspec.to_builtins(told)]
                for spec, told in self._open.items()
            ],
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave. Raises `ValueError` if it has other bins or levels."""
        histograms = ContextHistograms(LEVELS, BINS, self.settings.contexts, _USER)
        histograms.restore(saved["histograms"])
        self._quantiles.restore(saved["quantiles"])
        self._histograms = histograms
        self._learned_n = saved["learned_n"]
        self._open = {
            msgspec.convert(spec, JobSpec): msgspec.convert(told, _Told)
            for spec, told in saved["open"]
        }


def _keys(spec: JobSpec, requested_s: float | None) -> tuple[tuple[Any, ...], ...]:
    """What the job is like, one key for each of `LEVELS`."""
    kind, user = spec.job_class, spec.user
    size = floor(log2(spec.cpus))
    length = -1 if not requested_s else floor(log2(max(requested_s, 1.0)))
    like = (kind, user, requested_s, spec.cpus)
    by_user = (kind, user)
    return (
        (kind,),
        (kind, length),
        (kind, length, size),
        (kind, requested_s),
        (kind, spec.vo, length),
        by_user,
        by_user,
        (kind, user, length),
        like,
        like,
    )
