"""Replay of a trace's own scheduler: jobs of a workload, started at their recorded times."""

import heapq
from collections.abc import Callable, Iterator
from math import inf
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.formats.workload import Floats, Workload
from outrider.model.errors import TraceError
from outrider.model.events import COMPLETED, JOINED, STARTED, SUBMITTED, TICK, Event

NO_WAIT: Final = "no recorded wait"
"""Reason for which a job is left out."""


def jobs_with_waits(workload: Workload) -> NDArray[np.bool_]:
    """Return the mask (jobs,) of jobs with a recorded wait. Raises `TraceError` without any."""
    has_wait = ~np.isnan(workload.wait_s)
    if not has_wait.any():
        raise TraceError(
            f"{workload.name}: recorded: the trace does not record how long its jobs waited (its "
            "wait times are missing); fifo is the nearest"
        )
    return has_wait


class RecordedSite:
    """Replay of a workload as it happened: every job starts after its recorded wait.

    Decisions are not executed, so `start` is refused. Traces do not record which of several
    machines ran a job: it is given the free one with the lowest number. Where a trace uses more
        CPUs than its
    machines have (rounded times, machines added), the first machine is overbooked.

    Args:
        workload: the trace.
        on_start: called at every start with time, job, machine and CPUs.
        until_s: stop after events of this second; None: when every job is done.

    Attributes:
        left_out: number of jobs without a recorded wait; they have no events.
        overbooked: number of starts with too few CPUs left.

    Raises:
        TraceError: no job has a recorded wait.
    """

    def __init__(
        self,
        workload: Workload,
        on_start: Callable[[float, int, int, int], None],
        until_s: float | None = None,
    ) -> None:
        has_wait = jobs_with_waits(workload)
        self.workload = workload
        self._on_start = on_start
        self.until_s = inf if until_s is None else until_s
        self.now = -inf
        self.left_out = int((~has_wait).sum())
        self.overbooked = 0
        self._start_s = (workload.submit_s + workload.wait_s).tolist()
        self._run_s: list[float] = workload.run_s.tolist()
        self._cpus: list[int] = workload.cpus.tolist()
        self._left = [spec.cpus for spec in workload.machines]
        self._free = list(range(len(self._left)))
        self._machine: dict[int, int] = {}
        self._present: set[int] = set()
        self._heap: list[tuple[float, int, int]] = [
            (time_s, SUBMITTED, job)
            for job, (time_s, is_included) in enumerate(
                zip(workload.submit_s.tolist(), has_wait.tolist(), strict=True)
            )
            if is_included
        ]  # ascending, and so a heap
        self._open_n = len(self._heap)
        self._waits_s: Floats = np.full(len(workload.submit_s), np.nan)

    # -- actuator -----------------------------------------------------------------------------

    def start(self, job: int, machine: int) -> None:
        """Raise `ValueError`: a recorded schedule cannot be changed."""
        raise ValueError(f"job {job}: a recorded schedule cannot be changed")

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that time except starts."""
        heapq.heappush(self._heap, (max(time_s, self.now), TICK, 0))

    # -- oracle -------------------------------------------------------------------------------

    def run_s(self, job: int) -> float:
        """Return the true run time, seconds."""
        return self._run_s[job]

    def next_login_s(self, machine: int, after_s: float) -> float:
        """Return inf: the machines of a grid have no owners."""
        return inf

    def unfinished_run_s(self) -> Iterator[tuple[int, float]]:
        """Yield (job, true run time) of jobs that are queued or running."""
        for job in sorted(self._present):
            yield job, self._run_s[job]

    def waits_s(self) -> Floats:
        """Return waits until start, seconds (jobs,); inf: never started, nan: not submitted."""
        return self._waits_s

    def events(self) -> Iterator[Event]:
        """Yield all events in order, until every job is done or `until_s`.

        At equal times a tick comes before the trace's own starts.
        """
        self.now = 0.0
        for machine, spec in enumerate(self.workload.machines):
            yield 0.0, JOINED, machine, spec
        heap = self._heap
        while not self.is_done and heap[0][0] <= self.until_s:
            self.now, kind, job = heapq.heappop(heap)
            time_s = self.now
            if kind == SUBMITTED:
                self._present.add(job)
                self._waits_s[job] = inf
                heapq.heappush(heap, (self._start_s[job], STARTED, job))
                yield time_s, SUBMITTED, job, self.workload.spec(job)
            elif kind == STARTED:
                heapq.heappush(heap, (time_s + self._run_s[job], COMPLETED, job))
                cpus, machine = self._cpus[job], self._take(job)
                self._on_start(time_s, job, machine, cpus)
                self._waits_s[job] = time_s - self.workload.submit_s[job]
                yield time_s, STARTED, job, (machine, cpus)
            elif kind == COMPLETED:
                self._present.discard(job)
                self._open_n -= 1
                self._give_back(job)
                yield time_s, COMPLETED, job, None
            else:
                yield time_s, TICK, 0, None

    @property
    def is_done(self) -> bool:
        """True if every job has completed."""
        return not self._open_n

    def _take(self, job: int) -> int:
        """Choose a machine for a job and take its CPUs there."""
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
