"""Cost of a real or simulated run up to given times, counted from its events."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from math import inf, nan
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.energy import BADPUT, GOODPUT
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.events import Event

Floats = NDArray[np.float64]


class Mark(NamedTuple):
    """Totals from the beginning up to a time.

    Attributes:
        energy_j: joules of runs that ended, by cluster name; nan where watts are unknown.
        goodput_s, badput_s: CPU-seconds of runs that completed their job, and of the others.
        evictions: number of wasted runs, for any reason.
        completed: jobs whose overhead was counted: the first so many of `Tally.overhead_s`.
    """

    energy_j: dict[str, float]
    goodput_s: float
    badput_s: float
    evictions: int
    completed: int


NOTHING = Mark({}, 0.0, 0.0, 0, 0)


class Tally:
    """Counter of one run. It needs the engine's own site and accounting, and all its events.

    Args:
        site: of the engine that takes the events.
        accounting: of that engine; exact.
        times_s: when to mark the totals, ascending.

    Attributes:
        marks: one for each of `times_s` once they have passed.
        work_s: CPU-seconds in which jobs had a machine, runs that ended, by machine number.
        ran_s: seconds that each job ran, of its runs that ended, by job number.
        starts: by machine number.
        start_delays_s: of every start, seconds since its job waited and its machine was free:
            0 for a scheduler that uses free machines immediately.
    """

    def __init__(self, site: Site, accounting: Accounting, times_s: Sequence[float] = ()) -> None:
        self._site = site
        self._accounting = accounting
        self._times_s = [*times_s, inf]
        self.marks: list[Mark] = []
        self.work_s: defaultdict[int, float] = defaultdict(float)
        self.ran_s: defaultdict[int, float] = defaultdict(float)
        self.starts: Counter[int] = Counter()
        self.start_delays_s: list[float] = []
        self._runs: dict[int, tuple[float, int, int]] = {}
        self._ready_s: dict[int, float] = {}
        self._free_s: dict[int, float] = {}

    @property
    def mean_start_delay_s(self) -> float:
        """Mean of `start_delays_s`; 0 without a start."""
        return float(np.mean(self.start_delays_s)) if self.start_delays_s else 0.0

    @property
    def measured_j(self) -> dict[str, float]:
        """Joules of runs that meters measured, by cluster name."""
        joules = self._accounting.energy.measured
        return {
            name: joules[GOODPUT][number] + joules[BADPUT][number]
            for number, name in enumerate(self._site.cluster_names)
        }

    @property
    def total(self) -> Mark:
        """Totals up to now."""
        return self._mark()

    @property
    def overhead_s(self) -> Floats:
        """Overhead of the completed jobs, in order of completion, seconds."""
        values = self._accounting.overhead.values
        return np.array([] if values is None else values, dtype=np.float64)

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events unchanged, and count them."""
        next_s, ended = self._times_s[0], (ev.COMPLETED, ev.EVICTED, ev.REMOVED)
        for event in events:
            time_s, kind, subject, extra = event
            while time_s > next_s:
                self.marks.append(self._mark())
                next_s = self._times_s[len(self.marks)]
            if kind == ev.STARTED:
                self._started(time_s, subject, *extra)
            elif kind in ended:
                self._ended(time_s, kind, subject)
            elif kind == ev.SUBMITTED:
                eligible_s = extra.eligible_s
                self._ready_s[subject] = time_s if eligible_s is None else max(time_s, eligible_s)
            elif kind in (ev.USABLE, ev.JOINED):
                self._free_s[subject] = time_s
            yield event

    def close(self) -> None:
        """Add the marks that are still due after the last event."""
        while len(self.marks) < len(self._times_s) - 1:
            self.marks.append(self._mark())

    def _started(self, time_s: float, job: int, machine: int, cpus: int) -> None:
        self._runs[job] = time_s, machine, cpus
        self.starts[machine] += 1
        ready_s = self._ready_s.pop(job, None)
        if ready_s is not None:  # else it waited before the first event
            self.start_delays_s.append(time_s - max(ready_s, self._free_s.get(machine, -inf)))

    def _ended(self, time_s: float, kind: int, job: int) -> None:
        run = self._runs.pop(job, None)
        if run is not None:
            since_s, machine, cpus = run
            self.work_s[machine] += cpus * (time_s - since_s)
            self.ran_s[job] += time_s - since_s
            self._free_s[machine] = time_s
        if kind == ev.EVICTED:
            self._ready_s[job] = time_s
        else:
            self._ready_s.pop(job, None)

    def _mark(self) -> Mark:
        accounting = self._accounting
        joules = accounting.energy.joules
        energy_j = {
            name: joules[GOODPUT][number] + joules[BADPUT][number]
            for number, name in enumerate(self._site.cluster_names)
        }
        return Mark(
            energy_j,
            accounting.goodput_s,
            accounting.badput_s,
            sum(accounting.evictions.values()),
            accounting.overhead.n,
        )


def energy_j(mark: Mark) -> float:
    """Return joules of a mark over all clusters; nan where any is unknown."""
    return sum(mark.energy_j.values()) if mark.energy_j else nan
