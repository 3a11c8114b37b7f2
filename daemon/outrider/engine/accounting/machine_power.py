"""Energy of one machine: its state, and its power by table and by meter."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any, Final, NamedTuple

import msgspec

from outrider.model.jobs import RUNNING, Job
from outrider.model.machines import NEVER_S, MachineSpec

# -- meters ----------------------------------------------------------------------------------------
# Meters: how long a reading is valid, and which part of what they measured each run had.
#
# A meter reports the watts of a whole machine. They are split between its uses as the table would
# have split its own watts (`working_part`), so that table and meters can be added up.

METER_VALID_S: Final = 900.0
"""Seconds that a reading is valid at most.

Plugs report every 10 to 300 s; a meter that is silent for longer is no longer valid."""


class Stretch(NamedTuple):
    """Energy that a meter measured while its machine's state did not change.

    Attributes:
        purpose: the use of the part of the machine that ran no job.
        rest_j: joules of that part.
        cpu_j: joules of each CPU at work.
        seconds: duration.
    """

    purpose: str
    rest_j: float
    cpu_j: float
    seconds: float


class Meter(msgspec.Struct):
    """Readings of the meter of one machine.

    Attributes:
        time_s: of the last reading.
        watts: of the whole machine, at the last reading.
        until_s: the last reading is valid until then.
        cpu_j: joules measured so far for each CPU at work.
        covered_s: seconds measured so far.
        runs: (joules per CPU, seconds) by job, of runs on the machine: the values of the two
            counters above whenever the run paused, minus their values whenever it began to
            work. A run that began before the first reading began at 0.
    """

    time_s: float
    watts: float
    until_s: float
    cpu_j: float = 0.0
    covered_s: float = 0.0
    runs: dict[int, tuple[float, float]] = {}

    def read(self, watts: float, time_s: float) -> None:
        """Store the next reading; ignore one that is older than the last."""
        if time_s >= self.time_s:
            self.time_s, self.watts, self.until_s = time_s, watts, time_s + METER_VALID_S

    def count(self, stretch: Stretch) -> None:
        """Advance the counters past a stretch that is booked."""
        self.cpu_j += stretch.cpu_j
        self.covered_s += stretch.seconds

    def run_works(self, job: int) -> None:
        """Record the counters when a run begins to work or continues."""
        cpu_j, covered_s = self.runs.get(job, (0.0, 0.0))
        self.runs[job] = (cpu_j - self.cpu_j, covered_s - self.covered_s)

    def run_pauses(self, job: int) -> None:
        """Record the counters when a run is suspended."""
        self.runs[job] = self.of_run(job, True)

    def of_run(self, job: int, working: bool) -> tuple[float, float]:
        """Return the joules per CPU and seconds measured of a run, up to the counters' moment."""
        cpu_j, covered_s = self.runs.get(job, (0.0, 0.0))
        return (cpu_j + self.cpu_j, covered_s + self.covered_s) if working else (cpu_j, covered_s)


def working_part(busy: float, active_w: float, rest_w: float) -> float:
    """Return the part of a machine's measured watts that its working CPUs draw, 0 to 1.

    In proportion to the table's watts for them and for the rest; where the table has no watts, or
    0 for both, by CPUs.

    Args:
        busy: share of the machine's CPUs that work, from 0; above 1 where a site overbooks.
        active_w: watts of the whole machine at work, by the table; nan if unknown.
        rest_w: watts of the whole machine in the state of the rest of it; nan if unknown.
    """
    rest = max(0.0, 1.0 - busy)
    whole_w = busy * active_w + rest * rest_w
    if whole_w > 0.0:
        return busy * active_w / whole_w
    return busy / (busy + rest)


# -- machine power ---------------------------------------------------------------------------------

OWNER: Final = "owner"
IDLE: Final = "idle"
SLEEP: Final = "sleep"
GONE, IDLING, OWNED, ASLEEP = range(4)
_NAN: Final = float("nan")
_ROUNDING_S: Final = 1e-3
"""Seconds of a run without a reading below which they are a rounding error."""


class MachinePower:
    """State of a machine and its watts; nan where they are unknown.

    Attributes:
        cluster: number of its cluster.
        cpus: CPUs jobs may use.
        state: of the part that runs no job: GONE, IDLING, OWNED or ASLEEP.
        busy: CPUs at work; more than `cpus` where a site overbooks.
        since: its energy is booked until then.
        sleeps_at: it sleeps from then on if it idles.
        active_w, idle_w, sleep_w: watts of the whole machine, by the table.
        meter: the readings of its meter, or None if none was ever read.
    """

    __slots__ = (
        "active_w",
        "busy",
        "cluster",
        "cpus",
        "idle_w",
        "meter",
        "since",
        "sleep_w",
        "sleeps_at",
        "state",
    )

    def __init__(self) -> None:
        self.cluster = 0
        self.cpus = 1
        self.state = GONE
        self.busy = 0
        self.since = 0.0
        self.sleeps_at = NEVER_S
        self.active_w = self.idle_w = self.sleep_w = _NAN
        self.meter: Meter | None = None

    def describe(self, spec: MachineSpec, cluster: int) -> None:
        """Set what the machine is, first or again; work on it continues."""
        self.cluster = cluster
        self.cpus = max(1, spec.cpus)
        unseen = spec.inferred
        self.active_w = _NAN if spec.active_w is None else spec.active_w
        self.idle_w = _NAN if spec.idle_w is None or unseen else spec.idle_w
        self.sleep_w = _NAN if spec.sleep_w is None or unseen else spec.sleep_w

    def is_asleep(self, now: float) -> bool:
        """Return whether it sleeps now: by an event, or by its cluster's sleep delay."""
        return self.state == ASLEEP or (
            self.state == IDLING and not self.busy and now >= self.sleeps_at
        )

    def rests_as(self, now: float) -> tuple[str, float]:
        """Return the purpose of the part that runs no job, and a whole machine's watts for it."""
        if self.state == OWNED:
            return OWNER, self.active_w
        if self.is_asleep(now):
            return SLEEP, self.sleep_w
        return IDLE, self.idle_w

    # -- by the table -------------------------------------------------------------------------

    def table_w(self, cpus: int, now: float) -> float:
        """Return the watts now, with `cpus` CPUs at work."""
        if self.state == GONE:
            return 0.0
        share = min(1.0, cpus / self.cpus)
        if self.state == OWNED or share >= 1.0:
            return self.active_w
        rest_w = self.rests_as(now)[1]
        return share * self.active_w + (1.0 - share) * rest_w if share else rest_w

    def table_j(self, cpu_s: float) -> float:
        """Return the joules of `cpu_s` CPU-seconds of work: their share of the active watts."""
        return self.active_w * cpu_s / self.cpus

    # -- by the meter -------------------------------------------------------------------------

    def measured_w(self, now: float) -> float | None:
        """Return the measured watts now; None if no reading is valid."""
        return None if self.meter is None or now >= self.meter.until_s else self.meter.watts

    def measured(self, now: float) -> Iterator[Stretch]:
        """Yield what the meter measured since `since`, cut where the machine fell asleep."""
        if self.meter is None or min(now, self.meter.until_s) <= self.since:
            return
        until_s = min(now, self.meter.until_s)
        cuts = [self.since, until_s]
        if self.is_asleep(until_s) and self.since < self.sleeps_at < until_s:
            cuts.insert(1, self.sleeps_at)
        busy = max(0, self.busy) / self.cpus
        for begin_s, end_s in pairwise(cuts):
            purpose, rest_w = self.rests_as(begin_s)
            working = working_part(busy, self.active_w, rest_w)
            joules = self.meter.watts * (end_s - begin_s)
            cpu_j = working * joules / self.busy if busy else 0.0
            yield Stretch(purpose, (1.0 - working) * joules, cpu_j, end_s - begin_s)

    def run_j(self, job: Job, run_s: float, now: float) -> tuple[float, float]:
        """Return the joules of a run so far, and how many of them the meter measured.

        For the seconds of the run that no reading covered, the table is used.
        """
        if self.meter is None:
            return self.table_j(job.run_cpu_s(run_s)), 0.0
        working = job.state == RUNNING
        cpu_j, covered_s = self.meter.of_run(job.number, working)
        for stretch in self.measured(now) if working else ():
            cpu_j += stretch.cpu_j
            covered_s += stretch.seconds
        measured_j, table_s = cpu_j * job.cpus, run_s - covered_s
        if table_s < _ROUNDING_S:
            return measured_j, measured_j
        return measured_j + self.table_j(job.cpus * table_s), measured_j

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> list[Any]:
        """Return what changes, as plain data; the specification comes with the site's machines.

        A machine that has left keeps its own: runs may still end there.
        """
        sleeps_at = None if self.sleeps_at == NEVER_S else self.sleeps_at
        was = None
        if self.state == GONE:
            was = [self.cpus, self.active_w, self.idle_w, self.sleep_w]
        meter = msgspec.to_builtins(self.meter)
        return [self.state, self.busy, self.since, sleeps_at, meter, was]

    def restore(self, saved: list[Any]) -> None:
        """Resume from what `save` returned."""
        self.state, self.busy, self.since, sleeps_at, meter, was = saved
        if was is not None:
            self.cpus, self.active_w, self.idle_w, self.sleep_w = was
        self.sleeps_at = NEVER_S if sleeps_at is None else sleeps_at
        self.meter = msgspec.convert(meter, Meter | None)
