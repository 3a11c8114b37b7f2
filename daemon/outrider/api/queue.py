"""The queue as columns: what policies see that rank every waiting job at once.

A policy that scores jobs one by one pays an interpreter's price for each; over columns a thousand
waiting jobs cost about as much as one.
"""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from outrider.model.jobs import Job


class Queue(Protocol):
    """Waiting jobs, one row each, in the order in which they joined the queue. Read-only.

    Every column has the length of `jobs`. A preempted job waits here too, until it is resumed.
    """

    @property
    def jobs(self) -> Sequence[Job]:
        """The jobs, by row."""
        ...

    @property
    def submit_s(self) -> NDArray[np.float64]:
        """When each was submitted; if that is not known, when it joined the queue."""
        ...

    @property
    def estimate_s(self) -> NDArray[np.float64]:
        """Estimated run time on all the CPUs it asks for; nan where not known."""
        ...

    @property
    def cpus(self) -> NDArray[np.int64]:
        """CPUs it asks for."""
        ...

    @property
    def interactive(self) -> NDArray[np.bool_]:
        """True if its class is ``interactive``."""
        ...

    @property
    def vo(self) -> NDArray[np.int64]:
        """The number of its VO in `vo_names`."""
        ...

    @property
    def vo_names(self) -> Sequence[str]:
        """VOs seen so far, by number. Numbers are given out as VOs appear."""
        ...

    @property
    def work_s(self) -> NDArray[np.float64]:
        """Work that a preempted job has done, seconds on all the CPUs it asks for; others: 0."""
        ...

    @property
    def home(self) -> NDArray[np.int64]:
        """The machine on which a preempted job must be resumed; `NOWHERE`: it runs anywhere."""
        ...

    @property
    def bound(self) -> NDArray[np.bool_]:
        """True if CPUs are not all it asks for: other resources, or a class of machines."""
        ...

    @property
    def order(self) -> NDArray[np.float64]:
        """What `Policy.order` said of each when it joined the queue."""
        ...
