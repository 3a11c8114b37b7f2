"""The runs of jobs on machines and their slots: where each begins, ends, or is taken to be over."""

from collections import Counter
from typing import Any

from outrider.engine.ingest.job_history import GONE, QUEUED, RUNNING, JobHistory
from outrider.engine.ingest.job_registry import JobRegistry
from outrider.engine.ingest.machine_registry import MachineRegistry
from outrider.engine.ingest.slots import DelayedStart, LostRun, Slot, Slots
from outrider.model import events as ev
from outrider.model.events import Event


class JobRuns:
    """Starts and ends runs, one at a time on each slot.

    Methods return the events that follow for the engine, in order. `name` is always that of a job
    as its source gives it, `history` what is known of the same job.

    Args:
        jobs, machines: those that are known.
        repairs: counts what was mended, by kind.

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
        """A run begins; where its slot seems to be in use it is delayed (see `Slots`)."""
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
        """If the job's start is delayed it happens now, for a later event of the job has come."""
        if not self.is_delayed(name, history):
            return []
        return self._begin_delayed((history.machine, history.slot))

    def is_delayed(self, name: str, history: JobHistory) -> bool:
        """Whether the job's start is known, and delayed until its slot is free."""
        return bool(history.slot) and self.slots.is_delayed((history.machine, history.slot), name)

    def settle(self, now_s: float) -> list[Event]:
        """Starts that were delayed for the end of a run, which did not come before `now_s`."""
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
        """Let a delayed start happen; a run still there is over, for a slot runs one job."""
        time_s, name, machine, cpus = self.slots.take_delayed(place)
        over: list[Event] = []
        user = self.slots.user(place)
        if user is not None:
            self._repairs["slot_used_again"] += 1
            over = self._lose(time_s, user)
        return over + self._begin(time_s, name, self._jobs.jobs[name], machine, cpus)

    def _make_room(self, time_s: float, name: str, machine: str, cpus: int) -> list[Event]:
        """Disconnected runs are over where a machine has no CPUs left for a run that begins."""
        over: list[Event] = []
        m = self._machines.number_of(machine)
        for other in () if m is None else self.slots.disconnected(m):
            if other != name and not self._machines.has_room(machine, cpus):
                self._repairs["disconnected_run_over"] += 1
                over += self._lose(time_s, other)
        return over

    # -- ends ---------------------------------------------------------------------------------

    def evict(self, time_s: float, name: str, history: JobHistory, reason: str) -> list[Event]:
        """A run ends before its job is done; the job is queued again."""
        after = self._machines.end_run(history.machine, history.cpus, time_s, reason)
        history.state = QUEUED
        evicted: Event = (time_s, ev.EVICTED, history.number, reason)
        return [evicted, *after, *self._free_slot(name, history)]

    def end_with_job(self, time_s: float, name: str, history: JobHistory) -> list[Event]:
        """The job leaves the site, and its run with it. Returns what follows on its slot."""
        if self.is_delayed(name, history):  # it ends before it began
            self.slots.take_delayed((history.machine, history.slot))
            history.machine, history.slot = -1, ""
        if history.machine >= 0:
            self._machines.end_run(history.machine, history.cpus, time_s)
        history.state = GONE
        self.slots.take_lost(name)
        return self._free_slot(name, history)

    def _free_slot(self, name: str, history: JobHistory) -> list[Event]:
        """The job's slot is free: the start that was delayed for it happens."""
        place = (history.machine, history.slot)
        history.machine, history.slot = -1, ""
        self.slots.free(place, name)
        if not place[1]:
            return []
        return self._begin_delayed(place) if self.slots.is_awaited(place) else []

    # -- runs that may have ended unseen ------------------------------------------------------

    def _lose(self, time_s: float, name: str) -> list[Event]:
        """A run is taken to be over, though no source said so."""
        history = self._jobs.jobs[name]
        self.slots.lose(name, LostRun(time_s, history.machine, history.cpus))
        self.slots.free((history.machine, history.slot), name)
        self._machines.end_run(history.machine, history.cpus, time_s)
        history.state, history.machine, history.slot = QUEUED, -1, ""
        return [(time_s, ev.EVICTED, history.number, "unknown")]

    def take_lost(self, name: str) -> LostRun | None:
        """The run of the job that was taken to be over, which is forgotten by that; or None."""
        return self.slots.take_lost(name)

    def keep_lost(self, name: str, lost: LostRun) -> None:
        """Remember again what `take_lost` gave."""
        self.slots.lose(name, lost)

    def went_on(self, history: JobHistory, lost: LostRun) -> Event:
        """The start that undoes the end of a run that was taken to be over."""
        return lost.time_s, ev.STARTED, history.number, (lost.machine, lost.cpus)

    def resume(self, time_s: float, history: JobHistory, lost: LostRun) -> list[Event]:
        """A run that was taken to be over goes on."""
        history.state, history.machine, history.cpus = RUNNING, lost.machine, lost.cpus
        wider = self._machines.resize_run(lost.machine, lost.cpus, time_s)
        return [*wider, self.went_on(history, lost)]

    # -- changes of a run ---------------------------------------------------------------------

    def disconnect(self, name: str, history: JobHistory) -> None:
        """Its access point does not know whether the job's run goes on."""
        self.slots.disconnect(history.machine, name)

    def reconnect(self, name: str, history: JobHistory) -> None:
        """The job's run goes on."""
        self.slots.reconnect(history.machine, name)

    def resize(self, time_s: float, history: JobHistory, cpus: int) -> list[Event]:
        """The job's run has other CPUs from now on."""
        before = self._machines.resize_run(history.machine, cpus - history.cpus, time_s)
        history.cpus = cpus
        return [*before, (time_s, ev.RESIZED, history.number, cpus)]

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> Any:
        """What is known of the slots, as plain data."""
        return self.slots.save()

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self.slots.restore(saved)
