"""What is compared between policies: one table of measures, for the past and for each block."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.twin.replicates import Outcome
from outrider.twin.tally import NOTHING, Mark, Tally, energy_j

Floats = NDArray[np.float64]

CAP_S: Final = 86_400.0
"""Overheads count up to a day in the capped mean: no single job makes it."""


class Stretch(NamedTuple):
    """A part of a run: between two marks, with the overheads of the jobs that completed in it."""

    begin: Mark
    end: Mark
    overhead_s: Floats

    @property
    def energy_j(self) -> float:
        """Joules of the runs that ended; nan where watts are unknown."""
        before = energy_j(self.begin) if self.begin.energy_j else 0.0
        return energy_j(self.end) - before

    @property
    def badput_s(self) -> float:
        """CPU-seconds of runs that were thrown away."""
        return self.end.badput_s - self.begin.badput_s

    @property
    def goodput_s(self) -> float:
        """CPU-seconds of runs that completed their job."""
        return self.end.goodput_s - self.begin.goodput_s

    @property
    def evictions(self) -> int:
        """Runs that were thrown away, for whatever reason."""
        return self.end.evictions - self.begin.evictions


class Measure(NamedTuple):
    """A figure of a stretch.

    Attributes:
        name: its field in ``outrider twin --json``, the ratio of two policies.
        of: the figure; nan or 0 where it does not exist.
        floor: half width, on the logarithm, that an answer about the past has at least.
    """

    name: str
    of: Callable[[Stretch], float]
    floor: float


def _mean(stretch: Stretch) -> float:
    return float(stretch.overhead_s.mean()) if len(stretch.overhead_s) else 0.0


def capped_mean_s(stretch: Stretch) -> float:
    """Mean overhead, each counted up to `CAP_S`; 0 without any."""
    return float(np.minimum(stretch.overhead_s, CAP_S).mean()) if len(stretch.overhead_s) else 0.0


def _percentile(percent: float) -> Callable[[Stretch], float]:
    def of(stretch: Stretch) -> float:
        values = stretch.overhead_s
        return float(np.percentile(values, percent)) if len(values) else 0.0

    return of


MEASURES: Final = (
    Measure("energy_ratio", lambda s: s.energy_j, 0.01),
    Measure("badput_ratio", lambda s: s.badput_s, 0.01),
    Measure("evictions_ratio", lambda s: float(s.evictions), 0.01),
    Measure("overhead_mean_ratio", _mean, 0.03),
    Measure("overhead_capped_mean_ratio", capped_mean_s, 0.03),
    Measure("overhead_p95_ratio", _percentile(95), 0.03),
    Measure("overhead_p99_ratio", _percentile(99), 0.03),
)


def whole(outcome: Outcome) -> Stretch:
    """The whole past; jobs that are not done count with their overhead so far, as in a replay."""
    overhead_s = np.concatenate([outcome.overhead_s, outcome.unfinished_s])
    return Stretch(NOTHING, outcome.total, overhead_s)


def completed_only(outcome: Outcome) -> Stretch:
    """The whole past, with the overheads of jobs that completed: what a record has, too."""
    return Stretch(NOTHING, outcome.total, outcome.overhead_s)


def seen_stretch(tally: Tally) -> Stretch:
    """What happened, with the overheads of jobs that completed."""
    return Stretch(NOTHING, tally.total, tally.overhead_s)


def blocks(outcome: Outcome) -> list[Stretch]:
    """Each block of the past, with the jobs that completed in it."""
    ends = [*outcome.marks, outcome.total]
    return [
        Stretch(begin, end, outcome.overhead_s[begin.completed : end.completed])
        for begin, end in pairwise(ends)
    ]


def log_ratios(measure: Measure, candidate: Sequence[Stretch], other: Sequence[Stretch]) -> Floats:
    """(stretches,) logarithms of candidate over other; nan where either is 0 or unknown."""
    a = np.array([measure.of(stretch) for stretch in candidate], dtype=np.float64)
    b = np.array([measure.of(stretch) for stretch in other], dtype=np.float64)
    known = (a > 0.0) & (b > 0.0)
    return np.where(known, np.log(np.where(known, a, 1.0) / np.where(known, b, 1.0)), np.nan)
