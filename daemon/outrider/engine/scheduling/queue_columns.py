"""The queue as columns, kept up to date as jobs enter it and leave: `outrider.api.Queue`."""

from bisect import bisect_left
from math import nan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.model.decisions import NOWHERE
from outrider.model.jobs import SUSPENDED_STATE, Job

_SUBMIT, _ESTIMATE, _ORDER, _WORK = range(4)
_CPUS, _VO, _INTERACTIVE, _HOME, _BOUND = range(5)
_FIRST_ROWS: Final = 64
MOST_VOS: Final = 10_000
"""More than are ever named at once: an empty queue forgets the names of its past."""


class QueueColumns:
    """Pending jobs in the order in which they entered the queue, one row each.

    The first row goes by counting it out; any other by moving those behind it up: a few copies of
    memory, however many jobs wait.

    Attributes:
        jobs: by row.
        vo_names: by the numbers of column `vo`.
    """

    def __init__(self) -> None:
        self.jobs: list[Job] = []
        self.vo_names: list[str] = []
        self._vos: dict[str, int] = {}
        self._stamps: list[int] = []  # ascending
        self._floats = np.empty((4, _FIRST_ROWS))
        self._ints = np.empty((5, _FIRST_ROWS), dtype=np.int64)
        self._begin = self._end = 0  # the rows are these columns of both

    def __len__(self) -> int:
        return len(self.jobs)

    def add(self, job: Job, stamp: int, now: float, order: float) -> None:
        """A job enters the queue behind all others; `stamp` is later than theirs."""
        if not self.jobs and len(self.vo_names) > MOST_VOS:  # of jobs that are gone
            self.vo_names, self._vos = [], {}
        if self._end == self._floats.shape[1]:
            self._make_room()
        submit_s = now if job.submit_s is None else job.submit_s
        self._write(self._end, job, submit_s, order)
        self._end += 1
        self.jobs.append(job)
        self._stamps.append(stamp)

    def _make_room(self) -> None:
        """Move the rows to the front of arrays at least twice as long as they are."""
        begin, end = self._begin, self._end
        longer = max(_FIRST_ROWS, 2 * (end - begin))
        floats, ints = np.empty((4, longer)), np.empty((5, longer), dtype=np.int64)
        floats[:, : end - begin] = self._floats[:, begin:end]
        ints[:, : end - begin] = self._ints[:, begin:end]
        self._floats, self._ints, self._begin, self._end = floats, ints, 0, end - begin

    def _write(self, column: int, job: Job, submit_s: float, order: float) -> None:
        spec = job.spec
        estimate_s = nan if spec.estimate_s is None else spec.estimate_s
        vo = self._vos.get(spec.vo)
        if vo is None:
            vo = self._vos[spec.vo] = len(self.vo_names)
            self.vo_names.append(spec.vo)
        work_s, home = 0.0, NOWHERE
        if job.state == SUSPENDED_STATE:
            work_s, home = job.work_s(job.suspended_at_s), job.machine
        is_bound = not job.is_plain and spec.is_bound
        self._floats[:, column] = submit_s, estimate_s, order, work_s
        self._ints[:, column] = spec.cpus, vo, spec.job_class == "interactive", home, is_bound

    def at(self, stamp: int) -> Job | None:
        """The job at the place in the queue with this stamp; None if no job has it."""
        row = self._row(stamp)
        return None if row is None else self.jobs[row]

    def change(self, job: Job, stamp: int, order: float) -> None:
        """A job in the queue is declared anew, and keeps its place."""
        row = self._row(stamp)
        if row is not None:
            self._write(self._begin + row, job, float(self.submit_s[row]), order)

    def _row(self, stamp: int) -> int | None:
        stamps = self._stamps
        row = bisect_left(stamps, stamp)
        return None if row == len(stamps) or stamps[row] != stamp else row

    def remove(self, stamp: int) -> Job | None:
        """A job leaves the queue; None if it was not in it."""
        row = self._row(stamp)
        if row is None:
            return None
        if row == 0:
            self._begin += 1
        else:
            column, self._end = self._begin + row, self._end - 1
            self._floats[:, column : self._end] = self._floats[:, column + 1 : self._end + 1]
            self._ints[:, column : self._end] = self._ints[:, column + 1 : self._end + 1]
        del self._stamps[row]
        return self.jobs.pop(row)

    def stamp(self, row: int) -> int:
        """What tells this place in the queue from every other."""
        return self._stamps[row]

    @property
    def submit_s(self) -> NDArray[np.float64]:
        """When each was submitted; if that is not known, when it entered the queue."""
        return self._floats[_SUBMIT, self._begin : self._end]

    @property
    def estimate_s(self) -> NDArray[np.float64]:
        """Estimated run time on all the CPUs it asks for; nan where not known."""
        return self._floats[_ESTIMATE, self._begin : self._end]

    @property
    def order(self) -> NDArray[np.float64]:
        """What `Policy.order` said of each when it entered the queue."""
        return self._floats[_ORDER, self._begin : self._end]

    @property
    def cpus(self) -> NDArray[np.int64]:
        """CPUs it asks for."""
        return self._ints[_CPUS, self._begin : self._end]

    @property
    def vo(self) -> NDArray[np.int64]:
        """The number of its VO in `vo_names`."""
        return self._ints[_VO, self._begin : self._end]

    @property
    def interactive(self) -> NDArray[np.bool_]:
        """Whether its class is ``interactive``."""
        declared: NDArray[np.bool_] = self._ints[_INTERACTIVE, self._begin : self._end] == 1
        return declared

    @property
    def work_s(self) -> NDArray[np.float64]:
        """Work that a preempted job has done, seconds on all the CPUs it asks for; others: 0."""
        return self._floats[_WORK, self._begin : self._end]

    @property
    def home(self) -> NDArray[np.int64]:
        """The machine on which a preempted job must be resumed; `NOWHERE`: it runs anywhere."""
        return self._ints[_HOME, self._begin : self._end]

    @property
    def bound(self) -> NDArray[np.bool_]:
        """Whether CPUs are not all it asks for: other resources, or a class of machines."""
        asked: NDArray[np.bool_] = self._ints[_BOUND, self._begin : self._end] == 1
        return asked

    def save(self) -> dict[str, Any]:
        """The places in the queue, as plain data; the jobs are the site's."""
        return {
            "jobs": [job.number for job in self.jobs],
            "stamps": list(self._stamps),
            "submit_s": self.submit_s.tolist(),
            "order": self.order.tolist(),
            "vos": self.vo_names,
        }

    def restore(self, saved: dict[str, Any], jobs: dict[int, Job]) -> None:
        """Go on from what `save` gave."""
        self.jobs.clear()
        self._stamps.clear()
        self._begin = self._end = 0
        self.vo_names = list(saved["vos"])
        self._vos = {vo: number for number, vo in enumerate(self.vo_names)}
        rows = zip(saved["jobs"], saved["stamps"], saved["submit_s"], saved["order"], strict=True)
        for number, stamp, submit_s, order in rows:
            self.add(jobs[number], stamp, submit_s, order)
