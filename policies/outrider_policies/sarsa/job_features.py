"""What waiting jobs ask for, as columns: the actions among which a decision is made."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import Job, Queue


class Ask(NamedTuple):
    """One job: what it asks for, and since when.

    Attributes:
        interactive: whether its class is ``interactive``.
        vo: its VO.
        submit_s: its submission; of one that nobody saw coming, when it got in line.
        estimate_s: estimated run time, seconds; nan where nobody said.
        cpus: CPUs.
    """

    interactive: bool
    vo: str
    submit_s: float
    estimate_s: float
    cpus: int

    @classmethod
    def of(cls, job: Job, now: float) -> "Ask":
        """What a job asks for."""
        spec = job.spec
        return cls(
            spec.job_class == "interactive",
            spec.vo,
            now if job.submit_s is None else job.submit_s,
            nan if spec.estimate_s is None else spec.estimate_s,
            spec.cpus,
        )


@dataclass(frozen=True)
class Asks:
    """Many of them, one row each; `vo` numbers `vo_names`."""

    interactive: NDArray[np.bool_]
    vo: NDArray[np.int64]
    vo_names: Sequence[str]
    submit_s: NDArray[np.float64]
    estimate_s: NDArray[np.float64]
    cpus: NDArray[np.int64]

    @classmethod
    def of_queue(cls, queue: Queue) -> "Asks":
        """The columns of a queue."""
        return cls(
            queue.interactive, queue.vo, queue.vo_names, queue.submit_s, queue.estimate_s,
            queue.cpus,
        )  # fmt: skip

    @classmethod
    def of_jobs(cls, asks: Sequence[Ask]) -> "Asks":
        """The columns of a few jobs."""
        names = sorted({ask.vo for ask in asks})
        return cls(
            np.array([ask.interactive for ask in asks], dtype=bool),
            np.array([names.index(ask.vo) for ask in asks], dtype=np.int64),
            names,
            np.array([ask.submit_s for ask in asks], dtype=float),
            np.array([ask.estimate_s for ask in asks], dtype=float),
            np.array([ask.cpus for ask in asks], dtype=np.int64),
        )

    def __len__(self) -> int:
        return len(self.submit_s)
