"""Traces of episodes: the given one, a stretch of it, or one generated from a seed."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np

from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError
from outrider.python_api.reading import generate_grid
from outrider.python_api.replaying import trace_of
from outrider.replay.trials import Trace
from outrider.replay.workload_terms import WorkloadTerms
from outrider.simulation.estimates import estimate_rule
from outrider_lab.running.traces import part_of

TraceMaker = Callable[[int], Trace]
"""Makes a trace of a seed."""

FIRST_SEED: Final = 10_000
"""Seeds of made traces are drawn from here on: those below are for judging."""
_LAST_SEED: Final = 2**31 - 1
SMALL_GRID_ESTIMATES: Final = "lognormal:0.5"
"""Estimates on `small_grid`; the true run times would be more than any user knows."""


def small_grid(seed: int) -> Workload:
    """Return the grid of ``gymnasium.make("Outrider-v0")``: 300 jobs of one CPU on 10 machines.

    Two fifths of the jobs are interactive, and the offered work is what the machines can just do:
    that of Perez et al. (2008), smaller.
    """
    return generate_grid(seed, row=0.4, jobs=300, machines=10)


class Episode(NamedTuple):
    """Trace and terms of one episode.

    Attributes:
        trace: the trace.
        label: what it is called.
        seed: of estimates that are drawn, as ``outrider.replay(seed=...)`` takes it.
        is_drawn: another episode may have another trace.
    """

    trace: Trace
    label: str
    seed: int
    is_drawn: bool


class EpisodeSource:
    """Draws the trace of each episode.

    Args:
        trace: a trace or its path, what makes one of a seed, or None for `small_grid`.
        jobs: an episode runs so many consecutive jobs of a workload; None: all.
        terms: what is asked of it.

    Attributes:
        terms: the same, with the estimates of `small_grid` where that runs and none are given.

    Raises:
        ConfigurationError: an argument is wrong, or does not fit the trace.
        TraceError: the trace cannot be read.
    """

    def __init__(
        self, trace: Trace | Path | str | TraceMaker | None, jobs: int | None, terms: WorkloadTerms
    ) -> None:
        self.terms = terms
        if trace is None and terms.estimates is None:
            self.terms = terms._replace(estimates=estimate_rule(SMALL_GRID_ESTIMATES))
        self._make: TraceMaker | None = None
        self._fixed: tuple[Trace, str] | None = None
        if trace is None or callable(trace):
            self._make = small_grid if trace is None else trace
        else:
            self._fixed = self._checked(*trace_of(trace, self.terms, skip_bad=False))
        self._jobs = jobs
        if jobs is not None and jobs < 2:
            raise ConfigurationError(f"jobs = {jobs}; expected 2 or more, or None for all")
        if self._fixed is not None and jobs is not None:
            self._check_jobs(jobs, *self._fixed)

    def draw(self, rng: np.random.Generator) -> Episode:
        """Draw the next episode. Raises `ConfigurationError` if a trace does not fit the terms."""
        seed = int(rng.integers(FIRST_SEED, _LAST_SEED))
        if self._make is not None:
            found = self._make(seed)
            trace, label = self._checked(*trace_of(found, self.terms, skip_bad=False))
        elif self._fixed is not None:
            trace, label = self._fixed
        if self._jobs is not None:
            workload = self._check_jobs(self._jobs, trace, label)
            first = int(rng.integers(len(workload.submit_s) - self._jobs + 1))
            label = f"{label}, {self._jobs} jobs from row {first}"
            trace = part_of(workload, first, first + self._jobs, label)
        return Episode(trace, label, seed, self._make is not None or self._jobs is not None)

    def _checked(self, trace: Trace, label: str) -> tuple[Trace, str]:
        if not isinstance(trace, Workload):
            self.terms.refuse_for_campus(label)
        return trace, label

    def _check_jobs(self, jobs: int, trace: Trace, label: str) -> Workload:
        if not isinstance(trace, Workload):
            raise ConfigurationError(
                f"jobs = {jobs}: {label} is a campus, which is run as a whole; expected "
                "until_s, or a workload"
            )
        if len(trace.submit_s) < jobs:
            raise ConfigurationError(
                f"jobs = {jobs}: {label} has {len(trace.submit_s)}; expected so many or less"
            )
        return trace
