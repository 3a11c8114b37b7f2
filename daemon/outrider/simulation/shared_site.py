"""Simulation of a campus of wide machines, where policies may also plan."""

from outrider.formats.campus.campus import PLAIN_RUNS, Campus
from outrider.model.events import CPUS_GIVEN_BACK, RESIZED, RESUMED, SUSPENDED
from outrider.simulation.campus_site import SimulatedSite
from outrider.simulation.detailed_site import DetailedSite, Run


class SharedSite(DetailedSite):
    """Also carries out plans (`outrider.engine.ports.PlanActuator`): the class of wide machines.

    On fewer CPUs than it asks for a job works at that part of its speed. A job that a policy
    preempts keeps its work and its machine, where it can be resumed.
    """

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        """Start a queued job on `cpus` CPUs, or give a running one that many."""
        run = self._running.get(job)
        if run is None:
            self._begin(job, machine, cpus)
            return
        self._refuse_too_many(job, run, cpus)
        run.pause(self.now)
        self._go_on(job, run, cpus)
        self._started.append((self.now, RESIZED, job, cpus))

    def preempt(self, job: int) -> None:
        """Suspend a running job; it gives its CPUs back and keeps its work."""
        run = self._running[job]
        run.pause(self.now)
        run.due = None
        self._give(job, run, 0)
        self._started.append((self.now, SUSPENDED, job, CPUS_GIVEN_BACK))

    def resume(self, job: int, cpus: int) -> None:
        """Let a preempted job go on, without loss of work."""
        run = self._running[job]
        self._refuse_too_many(job, run, cpus)
        self._go_on(job, run, cpus)
        self._started.append((self.now, RESUMED, job, (run.machine, cpus)))

    def _go_on(self, job: int, run: Run, cpus: int) -> None:
        self._give(job, run, cpus)
        run.since_s = self.now
        self._schedule_next_event(job, run)

    def _refuse_too_many(self, job: int, run: Run, cpus: int) -> None:
        if cpus > self._left[run.machine] + run.cpus:
            raise ValueError(f"job {job} cannot have {cpus} CPUs at {self.now:g} s")


def simulated_site(campus: Campus, until_s: float | None = None) -> SimulatedSite:
    """The simulation of a campus: the fastest class that can do what the campus asks for."""
    if campus.shares_machines:
        return SharedSite(campus, until_s)
    return (SimulatedSite if campus.run_rules == PLAIN_RUNS else DetailedSite)(campus, until_s)
