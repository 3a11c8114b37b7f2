"""History of a site collected from events: its machines, owner sessions and jobs."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from math import inf, nan
from typing import Any, Final

from outrider.engine.ingest.normaliser import Normaliser
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec


class RecordedMachine:
    """Recorded history of a machine.

    Attributes:
        name: its host name.
        spec: its latest specification.
        owner_since_s: time of the present owner's log-in; None without one.
        idle_since_s: its last log-out or reboot; None once it became usable.
        busy: CPUs that run jobs now.
        most_busy: the maximum of `busy` so far.
        widest_run: the maximal CPUs of one run.
    """

    __slots__ = (
        "busy", "idle_since_s", "most_busy", "name", "owner_since_s", "spec", "widest_run"
    )  # fmt: skip

    def __init__(self, name: str, spec: MachineSpec) -> None:
        self.name = name
        self.spec = spec
        self.owner_since_s: float | None = None
        self.idle_since_s: float | None = None
        self.busy = 0
        self.most_busy = 0
        self.widest_run = 0

    @property
    def cpus(self) -> int:
        """CPUs that it declares; for one known only from its jobs, the most in use."""
        if self.spec.inferred:
            return max(1, self.most_busy)
        return max(self.spec.cpus, self.widest_run)


class RecordedJob:
    """Recorded history of a job.

    Attributes:
        name: the batch system's name of it.
        spec: its latest specification.
        cpus: those of its latest run; before its first, those that it asks for.
        submit_s: when it was submitted or became eligible, whichever is later.
        run_s: seconds of the run that completed it; nan if none was recorded.
        kill_s: when it was removed; nan if it was not.
        machine: number of the machine it runs on; -1: none.
        has_run: whether it ever started.
        longest_s: seconds of the longest of its runs that did not complete it.
        ran_s: seconds of all its runs that have ended.
        since_s: when its present run started, moved forward by the time it was suspended.
        paused_s: when it was suspended; None while it runs.
    """

    __slots__ = (
        "cpus", "has_run", "kill_s", "longest_s", "machine", "name", "paused_s", "ran_s",
        "run_s", "since_s", "spec", "submit_s",
    )  # fmt: skip

    def __init__(self, name: str, spec: JobSpec, submit_s: float) -> None:
        self.name = name
        self.spec = spec
        self.cpus = spec.cpus
        self.submit_s = submit_s
        self.run_s = nan
        self.kill_s = nan
        self.machine = -1
        self.has_run = False
        self.longest_s = 0.0
        self.ran_s = 0.0
        self.since_s = 0.0
        self.paused_s: float | None = None


COUNTED: Final = {
    ev.HELD: "holds of jobs",
    ev.DRAINED: "drains of machines",
    ev.LEFT: "departures of machines",
}
"""Events that a campus cannot represent: counted, so that they are not lost silently."""


class SiteRecord:
    """Collector of the history of a site from normalised events.

    Args:
        normaliser: the normaliser that numbered the jobs and machines of the events.

    Attributes:
        first_s, last_s: Unix times of the first and the last event.
        machines: by number.
        jobs: in the order of their first event.
        sessions: (machine number, log-in, log-out) of owners, Unix times.
        absences: (machine number, from, until) of machines that had left, not yet joined or were
            drained, Unix times.
        reboots: number of machines that rebooted, by Unix time.
        classes: numbers of the machines of each eligibility class, by its name, at the end.
        delays: how often each delay (whole seconds) from log-out or reboot to usable occurred.
        left_out: number of events that a campus cannot represent, by kind.
        repairs: gaps in the events that the normaliser filled, by kind.
        warnings: warnings of the sources.
    """

    def __init__(self, normaliser: Normaliser) -> None:
        self._normaliser = normaliser
        self.first_s = inf
        self.last_s = -inf
        self.machines: dict[int, RecordedMachine] = {}
        self.jobs: list[RecordedJob] = []
        self.sessions: list[tuple[int, float, float]] = []
        self.absences: list[tuple[int, float, float]] = []
        self._absent_since_s: dict[int, float] = {}
        self.reboots: Counter[float] = Counter()
        self.classes: dict[str, set[int]] = {}
        self.delays: Counter[int] = Counter()
        self.left_out: Counter[str] = Counter()
        self.repairs = normaliser.repairs
        self.warnings: list[str] = []
        self._alive: dict[int, RecordedJob] = {}
        self._handlers: dict[int, Callable[[float, int, Any], None]] = {
            ev.JOINED: self._joined,
            ev.LEFT: self._left,
            ev.DRAINED: self._absent,
            ev.OWNER_CAME: self._owner_came,
            ev.OWNER_WENT: self._owner_went,
            ev.REBOOTED: self._rebooted,
            ev.USABLE: self._usable,
            ev.ELIGIBLE: self._eligible,
            ev.SUBMITTED: self._submitted,
            ev.CHANGED: self._changed,
            ev.STARTED: self._started,
            ev.SUSPENDED: self._suspended,
            ev.RESUMED: self._resumed,
            ev.EVICTED: self._evicted,
            ev.COMPLETED: self._completed,
            ev.REMOVED: self._removed,
        }

    def take_all(self, events: Iterable[Event]) -> None:
        """Collect events, which must be in order."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Collect one event of the site."""
        time_s, kind, subject, extra = event
        self.first_s = min(self.first_s, time_s)
        self.last_s = max(self.last_s, time_s)
        if kind in COUNTED and not self._is_guess(kind, subject):
            self.left_out[COUNTED[kind]] += 1
        if handle := self._handlers.get(kind):
            handle(time_s, subject, extra)

    def _is_guess(self, kind: int, subject: int) -> bool:
        """Return whether the normaliser inferred a drain, after a job left for no known reason."""
        return kind == ev.DRAINED and self.machines[subject].spec.inferred

    def close(self, seen_s: float = -inf) -> None:
        """End the record, with all that still continues, at the last event or at `seen_s`."""
        self.last_s = max(self.last_s, seen_s)
        for number in self.machines:
            self._owner_went(self.last_s, number, None)
            self._present(self.last_s, number)
        for job in self._alive.values():
            if job.machine >= 0:
                self._count_run(self.last_s, job)

    def unfinished_n(self) -> int:
        """Return the number of jobs neither completed nor removed when the record ended."""
        return len(self._alive)

    # -- machines -----------------------------------------------------------------------------

    def _joined(self, time_s: float, number: int, spec: MachineSpec) -> None:
        machine = self.machines.get(number)
        if machine is None:
            name = self._normaliser.machine_names[number]
            self.machines[number] = RecordedMachine(name, spec)
            if time_s > self.first_s and not spec.inferred:
                self._absent_since_s[number] = self.first_s
        else:
            machine.spec = spec
        self._present(time_s, number)

    def _left(self, time_s: float, number: int, extra: None) -> None:
        self._owner_went(time_s, number, None)
        self._absent(time_s, number, None)

    def _absent(self, time_s: float, number: int, extra: None) -> None:
        self._absent_since_s.setdefault(number, time_s)

    def _present(self, time_s: float, number: int) -> None:
        since_s = self._absent_since_s.pop(number, None)
        if since_s is not None and since_s < time_s:
            self.absences.append((number, since_s, time_s))

    def _owner_came(self, time_s: float, number: int, extra: None) -> None:
        self.machines[number].owner_since_s = time_s

    def _owner_went(self, time_s: float, number: int, extra: None) -> None:
        machine = self.machines[number]
        if machine.owner_since_s is not None:
            self.sessions.append(
                (number, machine.owner_since_s, max(machine.owner_since_s, time_s))
            )
        machine.owner_since_s = None
        machine.idle_since_s = time_s

    def _rebooted(self, time_s: float, number: int, extra: None) -> None:
        self.reboots[time_s] += 1
        self.machines[number].idle_since_s = time_s

    def _usable(self, time_s: float, number: int, extra: None) -> None:
        machine = self.machines[number]
        if machine.idle_since_s is not None:
            self.delays[round(time_s - machine.idle_since_s)] += 1
        machine.idle_since_s = None
        self._present(time_s, number)

    def _eligible(self, time_s: float, number: int, extra: tuple[str, Sequence[int], bool]) -> None:
        name, machines, replaces = extra
        before = set() if replaces else self.classes.get(name, set())
        self.classes[name] = before | set(machines)

    # -- jobs ---------------------------------------------------------------------------------

    def _submitted(self, time_s: float, number: int, spec: JobSpec) -> None:
        submit_s = time_s if spec.eligible_s is None else max(time_s, spec.eligible_s)
        job = RecordedJob(self._normaliser.job_names[number], spec, submit_s)
        self.jobs.append(job)
        self._alive[number] = job

    def _changed(self, time_s: float, number: int, spec: JobSpec) -> None:
        job = self._alive[number]
        job.spec = spec
        if not job.has_run:
            job.cpus = spec.cpus

    def _started(self, time_s: float, number: int, extra: tuple[int, int]) -> None:
        job, machine = self._alive[number], self.machines[extra[0]]
        job.machine, job.since_s, job.paused_s = extra[0], time_s, None
        job.submit_s = min(job.submit_s, time_s)
        job.cpus, job.has_run = extra[1], True
        machine.busy += job.cpus
        machine.most_busy = max(machine.most_busy, machine.busy)
        machine.widest_run = max(machine.widest_run, job.cpus)
        self._present(time_s, extra[0])

    def _suspended(self, time_s: float, number: int, extra: None) -> None:
        self._alive[number].paused_s = time_s

    def _resumed(self, time_s: float, number: int, extra: None) -> None:
        job = self._alive[number]
        if job.paused_s is not None:
            job.since_s += max(0.0, time_s - job.paused_s)
        job.paused_s = None

    def _evicted(self, time_s: float, number: int, extra: Any) -> None:
        job = self._alive[number]
        self._count_run(time_s, job)
        self._vacate(job)

    def _completed(self, time_s: float, number: int, extra: None) -> None:
        job = self._alive.pop(number)
        if job.paused_s is not None:
            time_s = job.paused_s
        job.run_s = max(0.0, time_s - job.since_s)
        self._vacate(job)

    def _removed(self, time_s: float, number: int, extra: Any) -> None:
        job = self._alive.pop(number)
        job.kill_s = max(time_s, job.submit_s)
        self._count_run(time_s, job)
        self._vacate(job)

    def _count_run(self, time_s: float, job: RecordedJob) -> None:
        """Count a run that did not complete its job, or continues at the end of the record."""
        if job.machine >= 0:
            until_s = time_s if job.paused_s is None else job.paused_s
            job.longest_s = max(job.longest_s, until_s - job.since_s)
            job.ran_s += until_s - job.since_s

    def _vacate(self, job: RecordedJob) -> None:
        if job.machine >= 0:
            self.machines[job.machine].busy -= job.cpus
        job.machine = -1
