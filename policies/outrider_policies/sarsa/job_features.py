"""Properties of queued jobs, one by one or as columns: the actions of a decision."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, Queue


class JobProperties(NamedTuple):
    """Properties of one job.

    Attributes:
        interactive: whether its class is ``interactive``.
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
        """The properties of a job."""
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
        """The columns of a queue."""
        return cls(
            queue.interactive, queue.vo, queue.vo_names, queue.submit_s, queue.estimate_s,
            queue.cpus,
        )  # fmt: skip

    @classmethod
    def of_jobs(cls, jobs: Sequence[JobProperties]) -> "JobColumns":
        """The columns of a few jobs."""
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
