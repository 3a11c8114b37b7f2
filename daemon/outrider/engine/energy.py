"""Where the energy goes: joules by purpose and cluster, from meters, states and table watts.

A machine's CPUs that run jobs draw their share of its active watts; the rest of it draws what
its state asks for (owner: active, idle, asleep). So the purposes never count a second twice and
their sum is the integral of power, also on machines with many CPUs. While a meter's reading of
a machine holds, the measured watts stand for the table's, and are split as the table's would be.
Unknown watts are nan, and stay nan in every sum they enter: missing is not zero.
"""

from typing import Any, Final

from outrider.engine.machine_power import (
    ALL_RESTS,
    ASLEEP,
    GONE,
    IDLE,
    IDLING,
    OWNED,
    OWNER,
    SLEEP,
    MachinePower,
)
from outrider.engine.meters import METER_VALID_S, Meter
from outrider.model.clusters import ClusterSpec
from outrider.model.jobs import Job
from outrider.model.localtime import LocalTime
from outrider.model.machines import MachineSpec

GOODPUT: Final = "goodput"
BADPUT: Final = "badput"
PURPOSES: Final = (GOODPUT, BADPUT, "open", IDLE, SLEEP, OWNER)


class EnergyBook:
    """Joules by purpose and cluster number, settled whenever a machine changes its state.

    An idle machine falls asleep by its cluster's declared habit (`ClusterSpec`), so that no
    feeder has to send an event for it; one that says so by an event of its own may.

    Attributes:
        joules: by purpose and cluster number, measured or from the table.
        measured: the part of `joules` that meters measured.
    """

    def __init__(self, local_time: LocalTime) -> None:
        self._local_time = local_time
        self.joules: dict[str, list[float]] = {p: [] for p in PURPOSES if p != "open"}
        self.measured: dict[str, list[float]] = {p: [] for p in self.joules}
        self._habits: list[ClusterSpec | None] = []
        self._machines: list[MachinePower] = []

    def machine(self, m: int) -> MachinePower:
        """What a machine does and draws, to be looked at."""
        return self._machines[m]

    def is_asleep(self, m: int, now: float) -> bool:
        """Whether a machine sleeps now: by an event, or by its cluster's habit."""
        return self._machines[m].is_asleep(now)

    # -- machines -----------------------------------------------------------------------------

    def join(self, m: int, spec: MachineSpec, cluster: int, habits: ClusterSpec) -> None:
        """A machine joins, idle, or tells anew what it is; `settle` it first."""
        while len(self._habits) <= cluster:
            self._habits.append(None)
            for column in (*self.joules.values(), *self.measured.values()):
                column.append(0.0)
        self._habits[cluster] = habits if habits.sleeps else None
        while len(self._machines) <= m:
            self._machines.append(MachinePower())
        self._machines[m].describe(spec, cluster)

    def enter(self, m: int, state: int, now: float) -> None:
        """The part of the machine that runs no job enters a state."""
        machine = self._machines[m]
        if now > machine.since:
            self._settle(machine, now)
        machine.state = state
        if state == IDLING:
            self._begin_to_idle(machine, now)

    def _begin_to_idle(self, machine: MachinePower, now: float) -> None:
        """From now on nobody uses the part that runs no job; in a while it sleeps."""
        habits = self._habits[machine.cluster]
        if habits is not None:
            week_second = self._local_time.week_second(now)
            machine.sleeps_at = now + habits.sleep_after_s(week_second)

    def leave(self, m: int, now: float) -> None:
        """The machine is gone, and the last reading of its meter with it."""
        self.enter(m, GONE, now)
        meter = self._machines[m].meter
        if meter is not None:
            meter.until_s = min(meter.until_s, now)

    def read_meter(self, m: int, watts: float, time_s: float) -> None:
        """A machine's meter was read: these watts hold from now on, at most `METER_VALID_S`.

        What is booked already stays, should the reading come late.
        """
        self.settle(m, time_s)
        machine = self._machines[m]
        if machine.meter is None:
            machine.meter = Meter(time_s, watts, time_s + METER_VALID_S)
        else:
            machine.meter.read(watts, time_s)

    def settle(self, m: int, now: float) -> None:
        """Book the time since the last change."""
        machine = self._machines[m]
        if now > machine.since:
            self._settle(machine, now)

    def _settle(self, machine: MachinePower, now: float) -> None:
        since = machine.since
        if machine.meter is not None:
            since = self._book_measured(machine, machine.meter, now)
        machine.since = now
        rest = machine.rest
        if not rest or since >= now:
            return
        share_s = rest * (now - since)
        state, cluster = machine.state, machine.cluster
        if state == IDLING:
            sleeps_at = machine.sleeps_at
            if now > sleeps_at and rest > ALL_RESTS:  # no CPU keeps it awake
                asleep_s = share_s if since > sleeps_at else rest * (now - sleeps_at)
                self.joules[SLEEP][cluster] += asleep_s * machine.sleep_w
                share_s -= asleep_s
            self.joules[IDLE][cluster] += share_s * machine.idle_w
        elif state == OWNED:
            self.joules[OWNER][cluster] += share_s * machine.active_w
        elif state == ASLEEP:
            self.joules[SLEEP][cluster] += share_s * machine.sleep_w

    def _book_measured(self, machine: MachinePower, meter: Meter, now: float) -> float:
        """Book what the meter measured; returns since when the table must tell."""
        cluster = machine.cluster
        for stretch in machine.measured(now):
            self.joules[stretch.purpose][cluster] += stretch.rest_j
            self.measured[stretch.purpose][cluster] += stretch.rest_j
            meter.count(stretch)
        return max(machine.since, min(now, meter.until_s))

    # -- runs ---------------------------------------------------------------------------------

    def work(self, m: int, job: int, cpus: int, now: float) -> None:
        """CPUs begin to work for a job (a start, a resume)."""
        machine = self._machines[m]
        if now > machine.since:
            self._settle(machine, now)
        machine.rest -= cpus / machine.cpus
        if machine.meter is not None:
            machine.meter.run_works(job)

    def rest(self, m: int, cpus: int, now: float) -> None:
        """CPUs stop working for a job; an idle machine begins to idle anew."""
        machine = self._machines[m]
        if now > machine.since:
            self._settle(machine, now)
        machine.rest += cpus / machine.cpus
        if machine.state == IDLING or machine.state == ASLEEP:
            machine.state = IDLING
            self._begin_to_idle(machine, now)

    def pause(self, m: int, job: int, cpus: int, now: float) -> None:
        """CPUs rest while their job is suspended."""
        self.rest(m, cpus, now)
        meter = self._machines[m].meter
        if meter is not None:
            meter.run_pauses(job)

    def end_run(self, purpose: str, cluster: int, run_s: float, job: Job, now: float) -> None:
        """Book a run that ended, for a purpose; its CPUs `rest` after it."""
        machine = self._machines[job.machine]
        if machine.meter is None:
            self.joules[purpose][cluster] += machine.table_j(job.run_cpu_s(run_s))
            return
        joules, measured_j = machine.run_j(job, run_s, now)
        self.joules[purpose][cluster] += joules
        self.measured[purpose][cluster] += measured_j
        machine.meter.runs.pop(job.number, None)

    # -- the whole ----------------------------------------------------------------------------

    def restart(self, now: float) -> None:
        """Forget the joules so far and count from `now` on."""
        for m, machine in enumerate(self._machines):
            self.settle(m, now)
            machine.since = max(now, machine.since)
        for column in (*self.joules.values(), *self.measured.values()):
            column[:] = [0.0] * len(column)

    def save(self) -> dict[str, Any]:
        """What changes, as plain data; watts and habits come again with the machines."""
        return {
            "joules": self.joules,
            "measured": self.measured,
            "machines": [machine.save() for machine in self._machines],
        }

    def restore(self, saved: dict[str, Any], clusters: list[int]) -> None:
        """Go on from what `save` gave; `clusters[i]` is today's number of saved cluster i."""
        for book, name in ((self.joules, "joules"), (self.measured, "measured")):
            for purpose, column in saved[name].items():
                fresh = book[purpose]
                fresh[:] = [0.0] * len(fresh)
                for old, joules in zip(clusters, column, strict=False):
                    if old < len(fresh):
                        fresh[old] = joules
        for machine, told in zip(self._machines, saved["machines"], strict=True):
            machine.restore(told)
