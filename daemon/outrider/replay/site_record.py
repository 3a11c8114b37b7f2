"""What was recorded of a site: its machines, owner sessions and jobs, gathered from events."""

from collections import Counter
from collections.abc import Callable, Iterable
from math import inf, nan
from typing import Any, Final

from outrider.engine.ingest.normaliser import Tracker
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec


class RecordedMachine:
    """A machine as it was seen.

    Attributes:
        name: the machine.
        spec: what was last told of it.
        owner_since_s: when its owner came, None while there is none.
        idle_since_s: its last log-out or reboot, None when it was opened to jobs since.
        jobs: jobs on it now.
        most_jobs: most jobs on it at once.
    """

    __slots__ = ("idle_since_s", "jobs", "most_jobs", "name", "owner_since_s", "spec")

    def __init__(self, name: str, spec: MachineSpec) -> None:
        self.name = name
        self.spec = spec
        self.owner_since_s: float | None = None
        self.idle_since_s: float | None = None
        self.jobs = 0
        self.most_jobs = 0


class RecordedJob:
    """A job as it was seen.

    Attributes:
        name: the job.
        spec: what was last told of it.
        submit_s: when it entered the queue, or could first have run, whichever is later.
        run_s: seconds of the run that completed it; nan if none was seen.
        kill_s: when it was removed; nan if it was not.
        machine: where it runs, -1 for nowhere.
        since_s: when its present run began, suspended time left out.
        paused_s: when it was suspended.
    """

    __slots__ = (
        "kill_s", "machine", "name", "paused_s", "run_s", "since_s", "spec", "submit_s"
    )  # fmt: skip

    def __init__(self, name: str, spec: JobSpec, submit_s: float) -> None:
        self.name = name
        self.spec = spec
        self.submit_s = submit_s
        self.run_s = nan
        self.kill_s = nan
        self.machine = -1
        self.since_s = 0.0
        self.paused_s: float | None = None


COUNTED: Final = {
    ev.HELD: "holds of jobs",
    ev.DRAINED: "drains of machines",
    ev.LEFT: "departures of machines",
}
"""What a campus has no place for: counted, so that it is not silently lost."""


class SiteRecord:
    """Gathers events that the tracker of an intake has put right.

    Args:
        tracker: gave the jobs and machines of the events their numbers.

    Attributes:
        first_s, last_s: Unix times of the first event and of the last.
        machines: by number.
        jobs: in the order in which they were heard of.
        sessions: (machine number, log-in, log-out) of owners, Unix times.
        reboots: Unix times at which machines rebooted, and how many did.
        delays: whole seconds between a log-out or reboot and being usable, and how often.
        left_out: what a campus has no place for.
        repairs: gaps that had to be mended, as the tracker counts them.
        warnings: what the sources themselves had to say.
    """

    def __init__(self, tracker: Tracker) -> None:
        self._tracker = tracker
        self.first_s = inf
        self.last_s = -inf
        self.machines: dict[int, RecordedMachine] = {}
        self.jobs: list[RecordedJob] = []
        self.sessions: list[tuple[int, float, float]] = []
        self.reboots: Counter[float] = Counter()
        self.delays: Counter[int] = Counter()
        self.left_out: Counter[str] = Counter()
        self.repairs = tracker.repairs
        self.warnings: list[str] = []
        self._alive: dict[int, RecordedJob] = {}
        self._handlers: dict[int, Callable[[float, int, Any], None]] = {
            ev.JOINED: self._joined,
            ev.LEFT: self._owner_went,
            ev.OWNER_CAME: self._owner_came,
            ev.OWNER_WENT: self._owner_went,
            ev.REBOOTED: self._rebooted,
            ev.USABLE: self._usable,
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
        """Gather events, in order."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Gather one event."""
        time_s, kind, subject, extra = event
        self.first_s = min(self.first_s, time_s)
        self.last_s = max(self.last_s, time_s)
        if kind in COUNTED and not self._is_guess(kind, subject):
            self.left_out[COUNTED[kind]] += 1
        if handle := self._handlers.get(kind):
            handle(time_s, subject, extra)

    def _is_guess(self, kind: int, subject: int) -> bool:
        """Whether the tracker closed a machine because nobody told why a job left it."""
        return kind == ev.DRAINED and self.machines[subject].spec.inferred

    def close(self, seen_s: float = -inf) -> None:
        """The record ends here, or at `seen_s`: owners who still sit there leave."""
        self.last_s = max(self.last_s, seen_s)
        for number in self.machines:
            self._owner_went(self.last_s, number, None)

    def unfinished_n(self) -> int:
        """Jobs that were neither completed nor removed when the record ended."""
        return len(self._alive)

    # -- machines -----------------------------------------------------------------------------

    def _joined(self, time_s: float, number: int, spec: MachineSpec) -> None:
        machine = self.machines.get(number)
        if machine is None:
            name = self._tracker.machine_names[number]
            self.machines[number] = RecordedMachine(name, spec)
        else:
            machine.spec = spec

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

    # -- jobs ---------------------------------------------------------------------------------

    def _submitted(self, time_s: float, number: int, spec: JobSpec) -> None:
        submit_s = time_s if spec.eligible_s is None else max(time_s, spec.eligible_s)
        job = RecordedJob(self._tracker.job_names[number], spec, submit_s)
        self.jobs.append(job)
        self._alive[number] = job

    def _changed(self, time_s: float, number: int, spec: JobSpec) -> None:
        self._alive[number].spec = spec

    def _started(self, time_s: float, number: int, extra: tuple[int, int]) -> None:
        job, machine = self._alive[number], self.machines[extra[0]]
        job.machine, job.since_s, job.paused_s = extra[0], time_s, None
        job.submit_s = min(job.submit_s, time_s)
        machine.jobs += 1
        machine.most_jobs = max(machine.most_jobs, machine.jobs)
        if extra[1] > 1:
            self.left_out["starts on more than one CPU"] += 1

    def _suspended(self, time_s: float, number: int, extra: None) -> None:
        self._alive[number].paused_s = time_s

    def _resumed(self, time_s: float, number: int, extra: None) -> None:
        job = self._alive[number]
        if job.paused_s is not None:
            job.since_s += max(0.0, time_s - job.paused_s)
        job.paused_s = None

    def _evicted(self, time_s: float, number: int, extra: Any) -> None:
        self._vacate(self._alive[number])

    def _completed(self, time_s: float, number: int, extra: None) -> None:
        job = self._alive.pop(number)
        if job.paused_s is not None:
            time_s = job.paused_s
        job.run_s = max(0.0, time_s - job.since_s)
        self._vacate(job)

    def _removed(self, time_s: float, number: int, extra: Any) -> None:
        job = self._alive.pop(number)
        job.kill_s = max(time_s, job.submit_s)
        self._vacate(job)

    def _vacate(self, job: RecordedJob) -> None:
        if job.machine >= 0:
            self.machines[job.machine].jobs -= 1
        job.machine = -1
