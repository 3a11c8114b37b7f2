"""What a trace's own scheduler did: the jobs of a workload, started when they were in truth."""

import heapq
from collections.abc import Callable, Iterator
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.formats.workload import Workload
from outrider.model.errors import TraceError
from outrider.model.events import COMPLETED, JOINED, STARTED, SUBMITTED, TICK, Event

NO_WAIT: Final = "no recorded wait"
"""Why a job is left out of what was recorded."""


def jobs_with_waits(workload: Workload) -> NDArray[np.bool_]:
    """The jobs whose wait the trace records. Raises `TraceError` if there are none."""
    told = ~np.isnan(workload.wait_s)
    if not told.any():
        raise TraceError(
            f"{workload.name}: recorded: the trace does not say how long its jobs waited (its wait "
            "times are missing); fifo is the nearest"
        )
    return told


class RecordedSite:
    """Tells a workload as it happened: every start after the wait that the trace records.

    Nobody acts here, so that `start` is refused. Traces do not say which machine of many ran a
    job: it is the free one with the lowest number. Where a trace has more at work than its
    machine has CPUs (logs are rounded, machines grew), the first machine takes the surplus.

    Args:
        workload: the trace.
        started: told of every start: time, job, machine, CPUs.
        until_s: stop after events of this second; None: when every job is done.

    Attributes:
        left_out: jobs without a recorded wait; they are not told.
        overbooked: starts for which too few CPUs were left.

    Raises:
        TraceError: no job has a recorded wait.
    """

    def __init__(
        self,
        workload: Workload,
        started: Callable[[float, int, int, int], None],
        until_s: float | None = None,
    ) -> None:
        told = jobs_with_waits(workload)
        self.workload = workload
        self._started = started
        self.until_s = inf if until_s is None else until_s
        self.now = -inf
        self.left_out = int((~told).sum())
        self.overbooked = 0
        self._start_s = (workload.submit_s + workload.wait_s).tolist()
        self._run_s: list[float] = workload.run_s.tolist()
        self._cpus: list[int] = workload.cpus.tolist()
        self._left = [spec.cpus for spec in workload.machines]
        self._free = list(range(len(self._left)))
        self._machine: dict[int, int] = {}
        self._there: set[int] = set()
        self._heap: list[tuple[float, int, int]] = [
            (time_s, SUBMITTED, job)
            for job, (time_s, is_told) in enumerate(
                zip(workload.submit_s.tolist(), told.tolist(), strict=True)
            )
            if is_told
        ]  # ascending, and so a heap
        self._open_n = len(self._heap)

    # -- the wires of the engine --------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Refused: what is recorded cannot be changed. Raises `ValueError`."""
        raise ValueError(f"job {job}: nobody acts on what is recorded")

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment but starts."""
        heapq.heappush(self._heap, (max(time_s, self.now), TICK, 0))

    # -- the truth ----------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """The truth: seconds of work until the job ends by itself."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """Nobody sits at the machines of a grid."""
        return inf

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """The truth about jobs still there: (job, run time)."""
        for job in sorted(self._there):
            yield job, self._run_s[job]

    def events(self) -> Iterator[Event]:
        """Everything that happened, in order, until every job is done or the end.

        The engine decides on a tick before the trace's own starts of that moment.
        """
        self.now = 0.0
        for machine, spec in enumerate(self.workload.machines):
            yield 0.0, JOINED, machine, spec
        heap = self._heap
        while not self.is_done and heap[0][0] <= self.until_s:
            self.now, kind, job = heapq.heappop(heap)
            time_s = self.now
            if kind == SUBMITTED:
                self._there.add(job)
                heapq.heappush(heap, (self._start_s[job], STARTED, job))
                yield time_s, SUBMITTED, job, self.workload.spec(job)
            elif kind == STARTED:
                heapq.heappush(heap, (time_s + self._run_s[job], COMPLETED, job))
                cpus, machine = self._cpus[job], self._take(job)
                self._started(time_s, job, machine, cpus)
                yield time_s, STARTED, job, (machine, cpus)
            elif kind == COMPLETED:
                self._there.discard(job)
                self._open_n -= 1
                self._give_back(job)
                yield time_s, COMPLETED, job, None
            else:
                yield time_s, TICK, 0, None

    @property
    def is_done(self) -> bool:
        """Whether every job has completed."""
        return not self._open_n

    def _take(self, job: int) -> int:
        """The machine of a start."""
        machine = self._free[0] if self._free else 0
        left = self._left[machine] = self._left[machine] - self._cpus[job]
        if left <= 0 and self._free:
            heapq.heappop(self._free)
        self.overbooked += left < 0
        self._machine[job] = machine
        return machine

    def _give_back(self, job: int) -> None:
        machine = self._machine.pop(job)
        before = self._left[machine]
        left = self._left[machine] = before + self._cpus[job]
        if before <= 0 < left:
            heapq.heappush(self._free, machine)
