"""Which job runs on which slot of a machine; a slot runs one job at a time."""

from math import floor, inf
from typing import Any, NamedTuple, TypeAlias

Slot: TypeAlias = tuple[int, str]
"""Number of the machine and the slot's own part of its name: ``slot1_2``."""


class DelayedStart(NamedTuple):
    """A start on a slot that another run is still known to be on.

    Attributes:
        time_s: when it happened.
        job: as its source names it.
        machine: by name.
        cpus: of the run.
    """

    time_s: float
    job: str
    machine: str
    cpus: int


class LostRun(NamedTuple):
    """A run that was taken to be over, for its slot or its CPUs were used by another.

    Attributes:
        time_s: until when it was told to the engine.
        machine: by number.
        cpus: of the run.
    """

    time_s: float
    machine: int
    cpus: int


class Slots:
    """Jobs by slot, and starts that wait for the end of the run before them.

    A start on a slot in use says that the run before it is over, though no source said so: its
    machine or its startd was restarted. But a job's end and the next one's start often fall in the
    same second, in two logs with whole seconds, and then the end may come second. So such a start
    is delayed until the end has come, or the second has passed.

    A run whose access point lost the connection to it (*disconnected*) may go on or not. It is
    taken to be over where its machine has no CPUs left for a run that begins.

    Attributes:
        due_s: when the second of the oldest delayed start has passed; infinite without any.
    """

    def __init__(self) -> None:
        self.due_s = inf
        self._jobs: dict[Slot, str] = {}
        self._delayed: dict[Slot, DelayedStart] = {}
        self._away: dict[int, list[str]] = {}
        self._lost: dict[str, LostRun] = {}

    def user(self, slot: Slot) -> str | None:
        """The job that runs there; None if it is free."""
        return self._jobs.get(slot)

    def take(self, slot: Slot, job: str) -> None:
        """A run began there."""
        self._jobs[slot] = job

    def free(self, slot: Slot, job: str) -> None:
        """The run of this job is not there any more."""
        if self._jobs.get(slot) == job:
            del self._jobs[slot]
        if self._away:
            self.reconnect(slot[0], job)

    def disconnect(self, machine: int, job: str) -> None:
        """The connection to the job's run on this machine is lost: it may go on or not."""
        away = self._away.setdefault(machine, [])
        if job not in away:
            away.append(job)

    def reconnect(self, machine: int, job: str) -> None:
        """The job's run goes on, or is known to have ended."""
        away = self._away.get(machine, [])
        if job in away:
            away.remove(job)
            if not away:
                del self._away[machine]

    def disconnected(self, machine: int) -> list[str]:
        """Jobs that may still run there, the one disconnected for longest first."""
        return list(self._away.get(machine, ()))

    def lose(self, job: str, run: LostRun) -> None:
        """The job's run is taken to be over, though no source said so."""
        self._lost[job] = run

    def take_lost(self, job: str) -> LostRun | None:
        """The run of the job that was taken to be over, which is forgotten by that; or None."""
        return self._lost.pop(job, None) if self._lost else None

    def delay(self, slot: Slot, start: DelayedStart) -> None:
        """Keep a start until what runs there has ended."""
        self._delayed[slot] = start
        self._look_ahead()

    def is_awaited(self, slot: Slot) -> bool:
        """Whether a start waits there."""
        return slot in self._delayed

    def is_delayed(self, slot: Slot, job: str) -> bool:
        """Whether it is this job's start that waits there."""
        delayed = self._delayed.get(slot)
        return delayed is not None and delayed.job == job

    def take_delayed(self, slot: Slot) -> DelayedStart:
        """The start that waits there, which is forgotten by that."""
        delayed = self._delayed.pop(slot)
        self._look_ahead()
        return delayed

    def due(self, now_s: float) -> list[Slot]:
        """Where starts wait whose second has passed, the oldest first."""
        over = [
            (delayed.time_s, slot)
            for slot, delayed in self._delayed.items()
            if _due(delayed) <= now_s
        ]
        return [slot for _, slot in sorted(over)]

    def save(self) -> Any:
        """Everything as plain data."""
        return {
            "jobs": [[*slot, job] for slot, job in self._jobs.items()],
            "delayed": [[*slot, *delayed] for slot, delayed in self._delayed.items()],
            "away": [[machine, away] for machine, away in self._away.items()],
            "lost": [[job, *run] for job, run in self._lost.items()],
        }

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
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
