"""Properties of queued jobs, one by one or as columns: the actions of a decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf, nan
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, Queue


class JobProperties(NamedTuple):
    """Properties of one job, from which its features are computed.

    Attributes:
        interactive: True if its class is ``interactive``.
        vo: its VO.
        submit_s: its submission; if that is unknown, when it was enqueued.
        estimate_s: estimated run time, seconds; nan if unknown.
        cpus: requested CPUs.
    """

    interactive: bool
    vo: str
    submit_s: float
    estimate_s: float
    cpus: int

    @classmethod
    def of(cls, job: Job, now: float) -> "JobProperties":
        """Return the properties of a job."""
        spec = job.spec
        return cls(
            spec.job_class == "interactive",
            spec.vo,
            now if job.submit_s is None else job.submit_s,
            nan if spec.estimate_s is None else spec.estimate_s,
            spec.cpus,
        )


@dataclass(frozen=True)
class JobColumns:
    """Properties of several jobs, (jobs,) each; `vo` is an index into `vo_names`."""

    interactive: NDArray[np.bool_]
    vo: NDArray[np.int64]
    vo_names: Sequence[str]
    submit_s: NDArray[np.float64]
    estimate_s: NDArray[np.float64]
    cpus: NDArray[np.int64]

    @classmethod
    def of_queue(cls, queue: Queue) -> "JobColumns":
        """Return the columns of a queue."""
        return cls(
            queue.interactive, queue.vo, queue.vo_names, queue.submit_s, queue.estimate_s,
            queue.cpus,
        )  # fmt: skip

    @classmethod
    def of_jobs(cls, jobs: Sequence[JobProperties]) -> "JobColumns":
        """Return the columns of a few jobs."""
        names = sorted({job.vo for job in jobs})
        return cls(
            np.array([job.interactive for job in jobs], dtype=bool),
            np.array([names.index(job.vo) for job in jobs], dtype=np.int64),
            names,
            np.array([job.submit_s for job in jobs], dtype=float),
            np.array([job.estimate_s for job in jobs], dtype=float),
            np.array([job.cpus for job in jobs], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.submit_s)


# -- mean runs -------------------------------------------------------------------------------------
# Mean run times of this site, the unit of features, rewards and guards.

Floats = NDArray[np.float64]
UNKNOWN_S: Final = 3600.0
"""Run time assumed before any run has completed."""
_MEMORY_N: Final = 1000
_ALL: Final = 2


class MeanRuns:
    """Running means over completed runs, by class and of all, with a memory of about 1000 runs.

    After the n-th run, mean += (value - mean) / min(n, 1000).
    """

    def __init__(self) -> None:
        self._seconds = [UNKNOWN_S] * 3
        self._counts = [0] * 3
        self._work_s = UNKNOWN_S

    @property
    def run_s(self) -> float:
        """Mean run time, seconds."""
        return self._seconds[_ALL]

    @property
    def work_s(self) -> float:
        """Mean work of a run, CPU-seconds."""
        return self._work_s

    @property
    def is_known(self) -> bool:
        """True if any run has completed."""
        return self._counts[_ALL] > 0

    def take(self, interactive: bool, run_s: float, cpus: int) -> None:
        """Count a completed run."""
        for at in (int(interactive), _ALL):
            self._counts[at] += 1
            share = 1.0 / min(self._counts[at], _MEMORY_N)
            self._seconds[at] += share * (run_s - self._seconds[at])
        self._work_s += 1.0 / min(self._counts[_ALL], _MEMORY_N) * (run_s * cpus - self._work_s)

    def expected_s(self, estimate_s: Floats, interactive: NDArray[np.bool_]) -> Floats:
        """Return (n,) expected run times, seconds: estimates, or means of the class or of all."""
        missing = np.isnan(estimate_s)
        if not missing.any():
            return estimate_s
        batch_s, interactive_s = (
            seconds if count else self.run_s
            for seconds, count in zip(self._seconds[:_ALL], self._counts[:_ALL], strict=True)
        )
        return np.where(missing, np.where(interactive, interactive_s, batch_s), estimate_s)

    def save(self) -> dict[str, Any]:
        """Return the means and counts."""
        return {
            "seconds": list(self._seconds),
            "counts": list(self._counts),
            "work_s": self._work_s,
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Restore what `save` returned."""
        self._seconds = list(saved["seconds"])
        self._counts = list(saved["counts"])
        self._work_s = saved["work_s"]


# -- guards ----------------------------------------------------------------------------------------
# Starvation guards: a job that has waited too long comes first, regardless of its value.

INTERACTIVE: Final = "waited_interactive"
BATCH: Final = "waited_batch"


class Guards(NamedTuple):
    """Limits of the wait, in seconds, above which a job comes first.

    The wait is not a feature of a job, so without guards there is a second equilibrium: once
    interactive jobs wait long, their utility is near 0 and long batch jobs have more.
    """

    interactive_s: float = inf
    batch_s: float = inf

    @classmethod
    def of(
        cls, interactive_s: float, batch_ratio: float, usual_s: float, runs: MeanRuns
    ) -> "Guards":
        """Return guards for mean run times; batch jobs may wait at least `usual_s`, the backlog."""
        return cls(interactive_s, max(batch_ratio * runs.run_s, usual_s) if runs.is_known else inf)

    def first(self, jobs: JobColumns, now: float) -> tuple[int, str] | None:
        """Return the row of the job that must come first, and the reason; None: values decide.

        That is the oldest interactive job if it waited too long. If no interactive job is queued,
        it is the oldest batch job if that waited too long.
        """
        interactive = jobs.interactive
        if interactive.any():
            candidates, limit_s, reason = interactive, self.interactive_s, INTERACTIVE
        else:
            candidates, limit_s, reason = ~interactive, self.batch_s, BATCH
        oldest = int(np.where(candidates, jobs.submit_s, inf).argmin())
        return (oldest, reason) if now - jobs.submit_s[oldest] > limit_s else None
