"""Energy of machines with a meter: booked at once, for each of their runs is counted apart."""

from collections.abc import Callable, Iterable

from outrider.engine.accounting.machine_power import (
    ASLEEP,
    IDLE,
    IDLING,
    OWNED,
    OWNER,
    SLEEP,
    MachinePower,
)
from outrider.model.clusters import NEVER_S
from outrider.model.jobs import RUNNING, Job

Columns = dict[str, list[float]]
"""Joules by purpose and cluster number."""


class MeteredEnergy:
    """Joules by purpose and cluster number, settled whenever a machine changes its state.

    While a reading of a machine holds, the measured watts stand for the table's.

    Args:
        purposes: what joules are booked for.
        sleeps_at: when a machine of a cluster sleeps that begins to idle at a moment.

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
        """Book what the meter measured; returns since when the table must tell."""
        meter, cluster = machine.meter, machine.cluster
        if meter is None:
            return machine.since
        for stretch in machine.measured(now):
            self.joules[stretch.purpose][cluster] += stretch.rest_j
            self.measured[stretch.purpose][cluster] += stretch.rest_j
            meter.count(stretch)
        return max(machine.since, min(now, meter.until_s))

    def enter(self, machine: MachinePower, state: int, now: float) -> None:
        """The part of the machine that runs no job enters a state."""
        self.settle(machine, now)
        machine.state = state
        machine.sleeps_at = self._sleeps_at(machine.cluster, now) if state == IDLING else NEVER_S

    def work(self, machine: MachinePower, job: int, cpus: int, now: float) -> None:
        """CPUs begin to work for a job (a start, a resume)."""
        self.settle(machine, now)
        machine.busy += cpus
        if machine.meter is not None:
            machine.meter.run_works(job)

    def rest(self, machine: MachinePower, cpus: int, now: float) -> None:
        """CPUs stop working for a job; an idle machine begins to idle anew."""
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
