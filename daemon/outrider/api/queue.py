"""Columns of the queue, for policies that rank all waiting jobs together.

Scoring jobs one by one costs interpreter time for each; over columns, a thousand waiting jobs
cost about as much as one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.model.jobs import Job


class Queue(Protocol):
    """Table of waiting jobs, one row each, in the order in which they joined. Read-only.

    Every column has the length of `jobs`. A preempted job waits here too, until it is resumed.
    """

    @property
    def jobs(self) -> Sequence[Job]:
        """Waiting jobs, by row."""
        ...

    @property
    def submit_s(self) -> NDArray[np.float64]:
        """Time of each job's submission; if not known, when it joined the queue."""
        ...

    @property
    def estimate_s(self) -> NDArray[np.float64]:
        """Estimated run time on all the CPUs a job requests; nan where not known."""
        ...

    @property
    def cpus(self) -> NDArray[np.int64]:
        """Number of CPUs each job requests."""
        ...

    @property
    def interactive(self) -> NDArray[np.bool_]:
        """True for jobs of class ``interactive``."""
        ...

    @property
    def vo(self) -> NDArray[np.int64]:
        """Number of each job's VO in `vo_names`."""
        ...

    @property
    def vo_names(self) -> Sequence[str]:
        """Names of the VOs seen so far, by number, in order of appearance."""
        ...

    @property
    def work_s(self) -> NDArray[np.float64]:
        """Work that a preempted job has done, seconds on all the CPUs it requests; others: 0."""
        ...

    @property
    def home(self) -> NDArray[np.int64]:
        """Machine on which a preempted job must be resumed; `NOWHERE`: it runs anywhere."""
        ...

    @property
    def bound(self) -> NDArray[np.bool_]:
        """True if a job requests more than CPUs: other resources, or a class of machines."""
        ...

    @property
    def order(self) -> NDArray[np.float64]:
        """Place that `Policy.order` returned for each job when it joined the queue."""
        ...
