"""Runs of jobs on machines and slots: where each begins, ends, or is assumed to have ended."""

from collections import Counter
from math import floor, inf
from typing import Any, NamedTuple, TypeAlias

from outrider.engine.ingest.job_registry import GONE, QUEUED, RUNNING, JobHistory, JobRegistry
from outrider.engine.ingest.machine_registry import MachineRegistry
from outrider.model import events as ev
from outrider.model.events import Event

# -- slots -----------------------------------------------------------------------------------------
# Which job runs on which slot of a machine; a slot runs one job at a time.

Slot: TypeAlias = tuple[int, str]
"""Number of a machine and the slot's own part of its name, such as ``slot1_2``."""


class DelayedStart(NamedTuple):
    """Start on a slot where another run is not known to have ended.

    Attributes:
        time_s: when it happened.
        job: its name at its source.
        machine: by name.
        cpus: of the run.
    """

    time_s: float
    job: str
    machine: str
    cpus: int


class LostRun(NamedTuple):
    """Run that was assumed to have ended because another run used its slot or its CPUs.

    Attributes:
        time_s: the time of its end as reported to the engine.
        machine: by number.
        cpus: of the run.
    """

    time_s: float
    machine: int
    cpus: int


class Slots:
    """Jobs by slot, and starts that wait for the end of the run before them.

    A start on a slot in use means that the run before it is over, though no source reported it: its
    machine or its startd was restarted. But a job's end and the next one's start often fall in the
    same second, in two logs with whole seconds, and then the end may be read second. So such a
    start is delayed until the end is reported, or the second has passed.

    A run whose access point lost the connection to it (*disconnected*) may continue or not. It is
    assumed to have ended when its machine has no CPUs left for a run that begins.

    Attributes:
        due_s: when the second of the earliest delayed start has passed; infinite without any.
    """

    def __init__(self) -> None:
        self.due_s = inf
        self._jobs: dict[Slot, str] = {}
        self._delayed: dict[Slot, DelayedStart] = {}
        self._away: dict[int, list[str]] = {}
        self._lost: dict[str, LostRun] = {}

    def user(self, slot: Slot) -> str | None:
        """Return the job that runs in a slot; None if it is free."""
        return self._jobs.get(slot)

    def take(self, slot: Slot, job: str) -> None:
        """Record a run that began in a slot."""
        self._jobs[slot] = job

    def free(self, slot: Slot, job: str) -> None:
        """Remove the job's run from a slot."""
        if self._jobs.get(slot) == job:
            del self._jobs[slot]
        if self._away:
            self.reconnect(slot[0], job)

    def disconnect(self, machine: int, job: str) -> None:
        """Record a lost connection to a job's run on this machine: it may continue or not."""
        away = self._away.setdefault(machine, [])
        if job not in away:
            away.append(job)

    def reconnect(self, machine: int, job: str) -> None:
        """Record that the job's run continues, or is known to have ended."""
        away = self._away.get(machine, [])
        if job in away:
            away.remove(job)
            if not away:
                del self._away[machine]

    def disconnected(self, machine: int) -> list[str]:
        """Return the jobs that may still run there, the one disconnected for longest first."""
        return list(self._away.get(machine, ()))

    def lose(self, job: str, run: LostRun) -> None:
        """Record that the job's run is assumed to have ended, though no source reported it."""
        self._lost[job] = run

    def take_lost(self, job: str) -> LostRun | None:
        """Return and forget the job's run that was assumed to have ended; None if there is none."""
        return self._lost.pop(job, None) if self._lost else None

    def delay(self, slot: Slot, start: DelayedStart) -> None:
        """Keep a start until the run in its slot has ended."""
        self._delayed[slot] = start
        self._look_ahead()

    def is_awaited(self, slot: Slot) -> bool:
        """Return whether a start waits for a slot."""
        return slot in self._delayed

    def is_delayed(self, slot: Slot, job: str) -> bool:
        """Return whether this job's start waits for a slot."""
        delayed = self._delayed.get(slot)
        return delayed is not None and delayed.job == job

    def take_delayed(self, slot: Slot) -> DelayedStart:
        """Return the start that waits for a slot, and forget it."""
        delayed = self._delayed.pop(slot)
        self._look_ahead()
        return delayed

    def due(self, now_s: float) -> list[Slot]:
        """Return the slots with starts whose second has passed, the earliest start first."""
        over = [
            (delayed.time_s, slot)
            for slot, delayed in self._delayed.items()
            if _due(delayed) <= now_s
        ]
        return [slot for _, slot in sorted(over)]

    def save(self) -> Any:
        """Return everything as plain data."""
        return {
            "jobs": [[*slot, job] for slot, job in self._jobs.items()],
            "delayed": [[*slot, *delayed] for slot, delayed in self._delayed.items()],
            "away": [[machine, away] for machine, away in self._away.items()],
            "lost": [[job, *run] for job, run in self._lost.items()],
        }

    def restore(self, saved: Any) -> None:
        """Resume from what `save` returned."""
        self._jobs = {(m, name): job for m, name, job in saved["jobs"]}
        self._delayed = {
            (m, name): DelayedStart(*delayed) for m, name, *delayed in saved["delayed"]
        }
        self._away = {machine: list(away) for machine, away in saved["away"]}
        self._lost = {job: LostRun(*run) for job, *run in saved["lost"]}
        self._look_ahead()

    def _look_ahead(self) -> None:
        self.due_s = min(map(_due, self._delayed.values()), default=inf)


def _due(delayed: DelayedStart) -> float:
    return floor(delayed.time_s) + 1.0


# -- job runs --------------------------------------------------------------------------------------


class JobRuns:
    """Starts and ends of runs, one at a time on each slot.

    Methods return the events that follow for the engine, in order. `name` is always the name of a
    job at its source, `history` the registry's entry of the same job.

    Args:
        jobs, machines: the known ones.
        repairs: counts of repairs, by kind.

    Attributes:
        slots: which job runs on which slot, and the starts that are delayed.
    """

    def __init__(self, jobs: JobRegistry, machines: MachineRegistry, repairs: Counter[str]) -> None:
        self._jobs = jobs
        self._machines = machines
        self._repairs = repairs
        self.slots = Slots()

    # -- starts -------------------------------------------------------------------------------

    def start(
        self, time_s: float, name: str, history: JobHistory, machine: str, cpus: int, slot: str = ""
    ) -> list[Event]:
        """Begin a run; it is delayed while its slot seems to be in use (see `Slots`)."""
        history.state, history.cpus, history.slot = RUNNING, cpus, slot
        m = self._machines.number_of(machine) if slot else None
        if m is None or self.slots.user((m, slot)) is None:
            return self._begin(time_s, name, history, machine, cpus)
        place = (m, slot)
        before = self._begin_delayed(place) if self.slots.is_awaited(place) else []
        history.machine = m
        self.slots.delay(place, DelayedStart(time_s, name, machine, cpus))
        return before

    def start_delayed(self, name: str, history: JobHistory) -> list[Event]:
        """Begin the job's delayed start, if any, because a later event of the job arrived."""
        if not self.is_delayed(name, history):
            return []
        return self._begin_delayed((history.machine, history.slot))

    def is_delayed(self, name: str, history: JobHistory) -> bool:
        """Return whether the job's start is known, and delayed until its slot is free."""
        return bool(history.slot) and self.slots.is_delayed((history.machine, history.slot), name)

    def settle(self, now_s: float) -> list[Event]:
        """Begin the delayed starts whose awaited end was not reported before `now_s`."""
        return [event for slot in self.slots.due(now_s) for event in self._begin_delayed(slot)]

    def _begin(
        self, time_s: float, name: str, history: JobHistory, machine: str, cpus: int
    ) -> list[Event]:
        self.slots.take_lost(name)
        over = self._make_room(time_s, name, machine, cpus)
        m, before = self._machines.begin_run(machine, cpus, time_s)
        history.machine = m
        if history.slot:
            self.slots.take((m, history.slot), name)
        return [*over, *before, (time_s, ev.STARTED, history.number, (m, cpus))]

    def _begin_delayed(self, place: Slot) -> list[Event]:
        """Begin a delayed start; a run still there is over, for a slot runs one job."""
        time_s, name, machine, cpus = self.slots.take_delayed(place)
        over: list[Event] = []
        user = self.slots.user(place)
        if user is not None:
            self._repairs["slot_used_again"] += 1
            over = self._lose(time_s, user)
        return over + self._begin(time_s, name, self._jobs.jobs[name], machine, cpus)

    def _make_room(self, time_s: float, name: str, machine: str, cpus: int) -> list[Event]:
        """End disconnected runs if a machine has no CPUs left for a run that begins."""
        over: list[Event] = []
        m = self._machines.number_of(machine)
        for other in () if m is None else self.slots.disconnected(m):
            if other != name and not self._machines.has_room(machine, cpus):
                self._repairs["disconnected_run_over"] += 1
                over += self._lose(time_s, other)
        return over

    # -- ends ---------------------------------------------------------------------------------

    def evict(self, time_s: float, name: str, history: JobHistory, reason: str) -> list[Event]:
        """End a run before its job is done; the job is queued again."""
        after = self._machines.end_run(history.machine, history.cpus, time_s, reason)
        history.state = QUEUED
        evicted: Event = (time_s, ev.EVICTED, history.number, reason)
        return [evicted, *after, *self._free_slot(name, history)]

    def end_with_job(self, time_s: float, name: str, history: JobHistory) -> list[Event]:
        """End a job that leaves the site, and its run; return what follows on its slot."""
        if self.is_delayed(name, history):  # it ends before it began
            self.slots.take_delayed((history.machine, history.slot))
            history.machine, history.slot = -1, ""
        if history.machine >= 0:
            self._machines.end_run(history.machine, history.cpus, time_s)
        history.state = GONE
        self.slots.take_lost(name)
        return self._free_slot(name, history)

    def _free_slot(self, name: str, history: JobHistory) -> list[Event]:
        """Free the job's slot; the start that was delayed for it happens."""
        place = (history.machine, history.slot)
        history.machine, history.slot = -1, ""
        self.slots.free(place, name)
        if not place[1]:
            return []
        return self._begin_delayed(place) if self.slots.is_awaited(place) else []

    # -- runs that may have ended unseen ------------------------------------------------------

    def _lose(self, time_s: float, name: str) -> list[Event]:
        """Assume that a run has ended, though no source reported it."""
        history = self._jobs.jobs[name]
        self.slots.lose(name, LostRun(time_s, history.machine, history.cpus))
        self.slots.free((history.machine, history.slot), name)
        self._machines.end_run(history.machine, history.cpus, time_s)
        history.state, history.machine, history.slot = QUEUED, -1, ""
        return [(time_s, ev.EVICTED, history.number, "unknown")]

    def take_lost(self, name: str) -> LostRun | None:
        """Return and forget the job's run that was assumed to have ended; None if there is none."""
        return self.slots.take_lost(name)

    def keep_lost(self, name: str, lost: LostRun) -> None:
        """Remember again what `take_lost` returned."""
        self.slots.lose(name, lost)

    def went_on(self, history: JobHistory, lost: LostRun) -> Event:
        """Return the start that undoes the assumed end of a run."""
        return lost.time_s, ev.STARTED, history.number, (lost.machine, lost.cpus)

    def resume(self, time_s: float, history: JobHistory, lost: LostRun) -> list[Event]:
        """Resume a run that was assumed to have ended."""
        history.state, history.machine, history.cpus = RUNNING, lost.machine, lost.cpus
        wider = self._machines.resize_run(lost.machine, lost.cpus, time_s)
        return [*wider, self.went_on(history, lost)]

    # -- changes of a run ---------------------------------------------------------------------

    def disconnect(self, time_s: float, name: str, history: JobHistory) -> list[Event]:
        """Record that the access point has lost the connection to the job's run.

        If others use all CPUs of its machine, it is assumed to have ended.
        """
        self.slots.disconnect(history.machine, name)
        if self._machines.has_room(self._machines.names[history.machine], 0):
            return []
        self._repairs["disconnected_run_over"] += 1
        return self._lose(time_s, name)

    def reconnect(self, name: str, history: JobHistory) -> None:
        """Record that the job's run continues."""
        self.slots.reconnect(history.machine, name)

    def resize(self, time_s: float, history: JobHistory, cpus: int) -> list[Event]:
        """Change the number of CPUs of the job's run."""
        before = self._machines.resize_run(history.machine, cpus - history.cpus, time_s)
        history.cpus = cpus
        return [*before, (time_s, ev.RESIZED, history.number, cpus)]

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> Any:
        """Return the state of the slots, as plain data."""
        return self.slots.save()

    def restore(self, saved: Any) -> None:
        """Resume from what `save` returned."""
        self.slots.restore(saved)
