"""Energy accounting: joules by purpose and cluster, from meters, states and table watts.

A machine's CPUs that run jobs draw their share of its active watts; the rest of it draws what
its state requires (owner: active, idle, asleep). So no second is counted twice, and the sum over
purposes is the integral of power, also on machines with many CPUs. While a meter's reading of a
machine is valid, the measured watts replace the table's, and are split as the table's would be.
Unknown watts are nan, and stay nan in every sum they enter: missing is not zero.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import numpy as np

from outrider.engine.accounting.machine_power import (
    ASLEEP,
    GONE,
    IDLE,
    IDLING,
    METER_VALID_S,
    OWNED,
    OWNER,
    SLEEP,
    MachinePower,
    Meter,
)
from outrider.engine.accounting.power_log import RESTED, WORKED, Floats, Table, work_out
from outrider.model.jobs import RUNNING, Job
from outrider.model.localtime import LocalTime
from outrider.model.machines import NEVER_S, ClusterSpec, MachineSpec

# -- metered energy --------------------------------------------------------------------------------
# Energy of machines with a meter: booked immediately, for each of their runs is counted separately.

Columns = dict[str, list[float]]
"""Joules by purpose and cluster number."""


class MeteredEnergy:
    """Joules by purpose and cluster number, settled whenever a machine changes its state.

    While a reading of a machine is valid, the measured watts replace the table's.

    Args:
        purposes: the purposes to which joules are booked.
        sleeps_at: returns when a machine of a cluster sleeps that begins to idle at a moment.

    Attributes:
        joules: measured or from the table.
        measured: the part of `joules` that meters measured.
    """

    def __init__(self, purposes: Iterable[str], sleeps_at: Callable[[int, float], float]) -> None:
        self.joules: Columns = {purpose: [] for purpose in purposes}
        self.measured: Columns = {purpose: [] for purpose in self.joules}
        self._sleeps_at = sleeps_at

    def settle(self, machine: MachinePower, now: float) -> None:
        """Book the time since the last change."""
        if now <= machine.since:
            return
        since = self._book_measured(machine, now)
        machine.since = now
        rest_s = (1.0 - machine.busy / machine.cpus) * (now - since)
        if not rest_s:
            return
        state, cluster = machine.state, machine.cluster
        if state == IDLING:
            if machine.is_asleep(now):
                asleep_s = rest_s if since > machine.sleeps_at else now - machine.sleeps_at
                self.joules[SLEEP][cluster] += asleep_s * machine.sleep_w
                rest_s -= asleep_s
            self.joules[IDLE][cluster] += rest_s * machine.idle_w
        elif state == OWNED:
            self.joules[OWNER][cluster] += rest_s * machine.active_w
        elif state == ASLEEP:
            self.joules[SLEEP][cluster] += rest_s * machine.sleep_w

    def _book_measured(self, machine: MachinePower, now: float) -> float:
        """Book what the meter measured; return the time from which the table applies."""
        meter, cluster = machine.meter, machine.cluster
        if meter is None:
            return machine.since
        for stretch in machine.measured(now):
            self.joules[stretch.purpose][cluster] += stretch.rest_j
            self.measured[stretch.purpose][cluster] += stretch.rest_j
            meter.count(stretch)
        return max(machine.since, min(now, meter.until_s))

    def enter(self, machine: MachinePower, state: int, now: float) -> None:
        """Set the state of the part of the machine that runs no job."""
        self.settle(machine, now)
        machine.state = state
        machine.sleeps_at = self._sleeps_at(machine.cluster, now) if state == IDLING else NEVER_S

    def work(self, machine: MachinePower, job: int, cpus: int, now: float) -> None:
        """Set CPUs to work for a job (a start, a resume)."""
        self.settle(machine, now)
        machine.busy += cpus
        if machine.meter is not None:
            machine.meter.run_works(job)

    def rest(self, machine: MachinePower, cpus: int, now: float) -> None:
        """Set CPUs to rest after a job; the idle time of an idle machine restarts."""
        self.settle(machine, now)
        machine.busy -= cpus
        if machine.state == IDLING or machine.state == ASLEEP:
            self.enter(machine, IDLING, now)

    def end_run(
        self, machine: MachinePower, purpose: str, cluster: int, run_s: float, job: Job, now: float
    ) -> None:
        """Book a run that ended; its CPUs rest, unless they did already."""
        joules, measured_j = machine.run_j(job, run_s, now)
        self.joules[purpose][cluster] += joules
        self.measured[purpose][cluster] += measured_j
        if machine.meter is not None:
            machine.meter.runs.pop(job.number, None)
        if job.state == RUNNING:
            self.rest(machine, job.cpus, now)


# -- energy ----------------------------------------------------------------------------------------

GOODPUT: Final = "goodput"
BADPUT: Final = "badput"
PURPOSES: Final = (GOODPUT, BADPUT, "open", IDLE, SLEEP, OWNER)
_BATCH: Final = 3 * 16_384
"""Numbers in a log at which it is evaluated: enough to amortise the fixed cost."""


class EnergyStatistics:
    """Joules by purpose and cluster number, up to the last change of each machine.

    An idle machine falls asleep by its cluster's declared sleep delay (`ClusterSpec`), so that no
    feeder has to send an event for it; a feeder may still send one.

    Changes of machines without a meter, and runs that ended there, are only recorded, and evaluated
    many at a time, at the latest when a figure is read. Additions keep the order in which they were
    recorded, so that no sum depends on when that was.
    """

    def __init__(self, local_time: LocalTime) -> None:
        self._local_time = local_time
        self._habits: list[ClusterSpec] = []
        self._machines: list[MachinePower] = []
        self._table: Table | None = None
        self._by_table: dict[str, Floats] = {p: np.zeros(0) for p in PURPOSES if p != "open"}
        self._changes: list[float] = []
        self._runs: dict[str, list[float]] = {GOODPUT: [], BADPUT: []}
        self._with_meter: dict[int, MachinePower] = {}
        self._metered = MeteredEnergy(self._by_table, self._sleeps_at)

    def _sleeps_at(self, cluster: int, now: float) -> float:
        """Return when a machine sleeps that begins to idle now."""
        return now + self._habits[cluster].sleep_after_s(self._local_time.week_second(now))

    # -- figures ------------------------------------------------------------------------------

    @property
    def joules(self) -> Columns:
        """Joules by purpose and cluster number, measured or from the table."""
        self.work_out()
        metered = self._metered.joules
        return {p: (column + metered[p]).tolist() for p, column in self._by_table.items()}

    @property
    def measured(self) -> Columns:
        """Joules that meters measured: a part of `joules`."""
        return self._metered.measured

    @property
    def machines(self) -> Sequence[MachinePower]:
        """State and power of each machine, by its number; valid until the next change."""
        self.work_out()
        return self._machines

    def machine(self, m: int) -> MachinePower:
        """Return the state and power of one machine."""
        return self.machines[m]

    def is_asleep(self, m: int, now: float) -> bool:
        """Return whether a machine sleeps now: by an event, or by its cluster's sleep delay."""
        return self.machine(m).is_asleep(now)

    def table_j(self, m: int, cpu_s: float) -> float:
        """Return the joules of `cpu_s` CPU-seconds of work on a machine, by the table."""
        return self._machines[m].table_j(cpu_s)

    def run_j(self, job: Job, run_s: float, now: float) -> float:
        """Return the joules so far of a job's run on its machine; nan where they are unknown."""
        return self._machines[job.machine].run_j(job, run_s, now)[0]

    # -- machines -----------------------------------------------------------------------------

    def join(self, m: int, spec: MachineSpec, cluster: int, habits: ClusterSpec) -> None:
        """Add a machine, idle, or update what it is; call `settle` for it first."""
        known = self._habits[cluster] if cluster < len(self._habits) else habits
        if m < len(self._machines) or known != habits:
            self.work_out()
        self._know(cluster, habits)
        while len(self._machines) <= m:
            self._machines.append(MachinePower())
        self._machines[m].describe(spec, cluster)
        if self._table is not None and m < len(self._table.cpus):
            self._table.describe(m, self._machines[m])
        else:
            self._table = None

    def _know(self, cluster: int, habits: ClusterSpec) -> None:
        if cluster < len(self._habits) and self._habits[cluster] == habits:
            return
        while len(self._habits) <= cluster:
            self._habits.append(habits)
            for columns in (self._metered.joules, self._metered.measured):
                for column in columns.values():
                    column.append(0.0)
        self._habits[cluster] = habits
        self._table = None

    def know_clusters(self, habits: Sequence[ClusterSpec]) -> None:
        """Register clusters by number, also those whose machines have all gone elsewhere."""
        for cluster, spec in enumerate(habits):
            self._know(cluster, spec)

    def enter(self, m: int, state: int, now: float) -> None:
        """Set the state of the part of the machine that runs no job."""
        if m in self._with_meter:
            self._metered.enter(self._with_meter[m], state, now)
            return
        changes = self._changes
        changes.extend((m, state, now))
        if len(changes) >= _BATCH:
            self.work_out()

    def leave(self, m: int, now: float) -> None:
        """Remove a machine; the last reading of its meter ends, too."""
        self.enter(m, GONE, now)
        meter = self._machines[m].meter
        if meter is not None:
            meter.until_s = min(meter.until_s, now)

    def read_meter(self, m: int, watts: float, time_s: float) -> None:
        """Handle a meter reading: its watts are valid from now on, at most `METER_VALID_S`.

        What is booked already stays, if the reading arrives late.
        """
        if m not in self._with_meter:
            machine = self.machine(m)
            self.settle(m, max(time_s, machine.since))
            self.work_out()
            machine.meter = Meter(time_s, watts, time_s + METER_VALID_S)
            self._with_meter[m] = machine
            return
        machine = self._with_meter[m]
        self._metered.settle(machine, time_s)
        if machine.meter is not None:
            machine.meter.read(watts, time_s)

    def settle(self, m: int, now: float) -> None:
        """Book the time since the last change."""
        if m in self._with_meter:
            self._metered.settle(self._with_meter[m], now)
        else:
            self._changes.extend((m, WORKED, now))

    # -- runs ---------------------------------------------------------------------------------

    def work(self, m: int, job: int, cpus: int, now: float) -> None:
        """Set CPUs to work for a job (a start, a resume)."""
        if m in self._with_meter:
            self._metered.work(self._with_meter[m], job, cpus, now)
        else:
            self._changes.extend((m, WORKED + cpus, now))

    def rest(self, m: int, cpus: int, now: float) -> None:
        """Set CPUs to rest after a job; the idle time of an idle machine restarts."""
        if m in self._with_meter:
            self._metered.rest(self._with_meter[m], cpus, now)
        else:
            self._changes.extend((m, RESTED - cpus, now))

    def pause(self, m: int, job: int, cpus: int, now: float) -> None:
        """Set CPUs to rest while their job is suspended."""
        self.rest(m, cpus, now)
        if m in self._with_meter:
            meter = self._with_meter[m].meter
            if meter is not None:
                meter.run_pauses(job)

    def end_run(self, purpose: str, cluster: int, run_s: float, job: Job, now: float) -> None:
        """Book a run that ended, for a purpose; its CPUs rest, unless they did already."""
        m = job.machine
        if m in self._with_meter:
            self._metered.end_run(self._with_meter[m], purpose, cluster, run_s, job, now)
            return
        runs = self._runs[purpose]
        runs.extend((m, cluster, job.cpu_s + (run_s - job.counted_s) * job.cpus))
        if job.state == RUNNING:
            self._changes.extend((m, RESTED - job.cpus, now))
        if len(runs) >= _BATCH:
            self.work_out()

    def add(self, purpose: str, cluster: int, joules: float) -> None:
        """Book joules that are computed elsewhere."""
        self._metered.joules[purpose][cluster] += joules

    def correct(
        self, m: int, spec: MachineSpec, cluster: int, habits: ClusterSpec, cpus: int, now: float
    ) -> None:
        """Correct a machine after a fault: what it is, and how many of its CPUs work now."""
        if m >= len(self._machines):
            self.join(m, spec, cluster, habits)
        self.settle(m, now)
        machine = self.machine(m)
        if machine.busy < cpus:
            machine.busy = cpus
        elif machine.busy > cpus:
            self.rest(m, machine.busy - cpus, now)

    # -- the whole ----------------------------------------------------------------------------

    def work_out(self) -> None:
        """Update the sums with everything recorded."""
        if self._table is None:
            self._table = Table.of(self._machines, self._habits)
            for purpose, sums in self._by_table.items():
                more = len(self._habits) - len(sums)
                self._by_table[purpose] = np.append(sums, np.zeros(more))
        if self._changes:
            self._rests(self._table)
            self._changes.clear()
        for purpose, noted in self._runs.items():
            if noted:
                m, cluster, cpu_s = np.array(noted, dtype=float).reshape(-1, 3).T
                machines = m.astype(np.intp)
                joules = self._table.active_w[machines] * cpu_s / self._table.cpus[machines]
                np.add.at(self._by_table[purpose], cluster.astype(np.intp), joules)
                noted.clear()

    def _rests(self, table: Table) -> None:
        """Book the energy of parts that ran no job, up to their last recorded changes."""
        done = work_out(self._changes, self._machines, table, self._local_time)
        for purpose, rows, joules in (
            (IDLE, done.state == IDLING, done.awake_j),
            (OWNER, done.state == OWNED, done.awake_j),
            (SLEEP, (done.state == ASLEEP) | (done.asleep_s != 0.0), done.asleep_j),
        ):
            counted = rows & done.counts
            np.add.at(self._by_table[purpose], done.cluster[counted], joules[counted])

    def restart(self, now: float) -> None:
        """Forget the joules so far and count from `now` on."""
        for m in range(len(self._machines)):
            self.settle(m, now)
        self.work_out()
        for sums in self._by_table.values():
            sums[:] = 0.0
        for columns in (self._metered.joules, self._metered.measured):
            for column in columns.values():
                column[:] = [0.0] * len(column)

    def save(self) -> dict[str, Any]:
        """Return what changes, as plain data; watts and sleep delays come with the machines."""
        self.work_out()
        return {
            "joules": {purpose: sums.tolist() for purpose, sums in self._by_table.items()},
            "at_once": self._metered.joules,
            "measured": self._metered.measured,
            "machines": [machine.save() for machine in self._machines],
        }

    def restore(self, saved: dict[str, Any], clusters: list[int]) -> None:
        """Resume from what `save` returned; `clusters[i]` is today's number of saved cluster i."""
        self.work_out()
        kept: tuple[tuple[str, Columns | dict[str, Floats]], ...] = (
            ("joules", self._by_table),
            ("at_once", self._metered.joules),  # not in a snapshot from before it was separate
            ("measured", self._metered.measured),
        )
        for name, columns in kept:
            for purpose, column in saved.get(name, {}).items():
                fresh = columns[purpose]
                fresh[:] = [0.0] * len(fresh)
                for old, joules in zip(clusters, column, strict=False):
                    if old < len(fresh):
                        fresh[old] = joules
        for m, (machine, state) in enumerate(zip(self._machines, saved["machines"], strict=True)):
            machine.restore(state)
            if machine.meter is not None:
                self._with_meter[m] = machine
        self._table = None
