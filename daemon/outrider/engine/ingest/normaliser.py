"""Normaliser of source events: names become numbers, duplicates are dropped, gaps closed.

Logs are rotated and read twice, two logs report the same job, a source starts in the middle. The
normaliser knows the state of every job and machine by name and drops what was reported before.
Where a transition is impossible it inserts what must have happened in between, and counts that.
What nothing in between explains is rejected. The engine gets events that do not contradict each
other.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

from outrider.engine.ingest.bounded_names import FollowedJobs, Names, clean_event
from outrider.engine.ingest.job_registry import (
    AFTER,
    QUEUED,
    RUNNING,
    SUSPENDED,
    EventKey,
    JobHistory,
    JobRegistry,
    event_key,
    is_possible,
)
from outrider.engine.ingest.job_runs import JobRuns, LostRun
from outrider.engine.ingest.machine_registry import Complete, Describe, MachineRegistry, as_reported
from outrider.engine.ingest.set_aside import IMPOSSIBLE_STATE, NotApplicableError
from outrider.model import events as ev
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import UNSEEN_JOB, Job, JobSpec

_NAMING: Final = frozenset({ev.SUBMITTED, ev.CHANGED, ev.STARTED})
"""Kinds of job events that name a user, a VO or a machine."""


class Normaliser:
    """Converter of named events into numbered ones that are possible.

    Args:
        describe, complete: see `MachineRegistry`.
        names: limits on the names that are followed; None: all are, for a log that is read once.

    Attributes:
        repairs: counts of repairs, by kind.
    """

    def __init__(
        self, describe: Describe, complete: Complete = as_reported, names: Names | None = None
    ) -> None:
        self.names = names
        self.repairs: Counter[str] = Counter()
        self._recalled: set[str] = set()
        followed = FollowedJobs(0) if names is None else names.job
        self._job_registry = JobRegistry(followed)
        self._machines = MachineRegistry(describe, complete, self.repairs, names)
        self._transitions = JobTransitions(self._job_registry, self._machines, self.repairs)
        self._runs = self._transitions.runs
        if names is not None:
            names.user.in_use = lambda: {each.spec.user for each in self.jobs.values()}
            names.vo.in_use = lambda: {each.spec.vo for each in self.jobs.values()}

    @property
    def machine_names(self) -> list[str]:
        """Names of the machines, by number."""
        return self._machines.names

    def machine_number(self, name: str) -> int | None:
        """Return the number of a machine; None for one that was never named, or is forgotten."""
        return self._machines.number_of(name)

    def translate(self, event: NamedEvent) -> list[Event] | None:
        """Return the events that `event` means, in order; None if it is a duplicate.

        Raises:
            NotApplicableError: it is impossible, and nothing explains it.
        """
        time_s, kind, subject, extra = clean_event(event)
        if kind in ev.JOB_KINDS:
            return self._job_event(time_s, kind, subject, extra)
        return self._machines.translate(time_s, kind, subject, extra)

    @property
    def settles_at_s(self) -> float:
        """Time when `settle` has events to return; infinite where nothing is delayed."""
        return self._runs.slots.due_s

    def settle(self, now_s: float) -> list[Event]:
        """Return events that waited for another one, which was not reported before `now_s`."""
        return self._runs.settle(now_s)

    @property
    def jobs(self) -> dict[str, JobHistory]:
        """Jobs at the site, by the name their source gives them."""
        return self._job_registry.jobs

    @property
    def job_names(self) -> dict[int, str]:
        """Unique name of every job, by number."""
        return self._job_registry.names

    def known_by(self, own: str) -> JobHistory | None:
        """Return the job that is here under a unique name (see `job_names`), or None."""
        return self._job_registry.known_by(own)

    def is_disconnected(self, own: str) -> bool:
        """Return whether a source lost the connection to the run of the job of a unique name."""
        history = self.known_by(own)
        if history is None:
            return False
        away = self._runs.slots.disconnected(history.machine)
        return any(self.jobs.get(name) is history for name in away)

    def name_at(self, time_s: float, name: str) -> str:
        """Return the unique name of the job that a source called `name` at a time."""
        return self._job_registry.name_at(name, round(time_s * 1000))

    # -- jobs ---------------------------------------------------------------------------------

    def _job_event(self, time_s: float, kind: int, name: str, extra: Any) -> list[Event] | None:
        key = event_key(time_s, kind, extra)
        if kind in _NAMING and self.names is not None:
            extra = self._bounded(time_s, kind, extra, self.names)
        registry = self._job_registry
        own = registry.name_at(name, key[1])
        history = registry.jobs.get(name)
        older = history is not None and registry.names[history.number] != own
        if older:
            history = None  # the record is of an earlier job of this name
        if kind == ev.SUBMITTED and extra.recalled and registry.is_known(own, history, key):
            self._recall(name, history, extra)
            return None
        if registry.is_duplicate(own, kind, key, history, older):
            return None
        if history is None and self._is_beyond(kind):
            return []
        if kind == ev.SUBMITTED:
            return self._submitted(time_s, name, history, extra, key)
        before: list[Event] = []
        if history is None:
            history = registry.add(name, UNSEEN_JOB)
            self.repairs["unseen_submission"] += 1
            before = [(time_s, ev.SUBMITTED, history.number, UNSEEN_JOB)]
        history.add(key)
        if name in self._recalled:
            self._recalled.discard(name)
            before.append((time_s, ev.CHANGED, history.number, history.spec))
        before += self._runs.start_delayed(name, history)
        try:
            return before + self._transitions.apply(time_s, kind, name, history, extra)
        except NotApplicableError:
            if not before:
                raise
            return before  # it shows at least that the job is there

    def _is_beyond(self, kind: int) -> bool:
        """Return whether there are too many jobs to follow another one; count its submission."""
        if self.names is None or self.names.job.has_room(runs=kind == ev.STARTED):
            return False
        self.names.job.folded += kind == ev.SUBMITTED
        return True

    def _bounded(self, time_s: float, kind: int, extra: Any, names: Names) -> Any:
        """Return an event's content with followed names only."""
        if kind == ev.SUBMITTED:
            return names.spec(extra, time_s)
        if kind == ev.CHANGED:
            return names.changes(extra, time_s)
        machine = names.machine.of(extra[0], time_s)
        if machine is extra[0]:
            return extra
        return (machine, *extra[1:]) if machine == extra[0] else (machine, extra[1])

    def _recall(self, name: str, history: JobHistory | None, spec: JobSpec) -> None:
        """Keep what the record of a job's end adds to the first one (Torque: user, VO).

        It is passed on with the job's next event: alone it is not an event.
        """
        if history is not None and spec.user and not history.spec.user:
            known = msgspec.structs.replace(spec, seen_submit=history.spec.seen_submit)
            self._job_registry.declare(name, history, known)
            self._recalled.add(name)

    def _submitted(
        self, time_s: float, name: str, history: JobHistory | None, extra: JobSpec, key: EventKey
    ) -> list[Event]:
        before: list[Event] = []
        if history is not None:
            if not history.spec.seen_submit:
                history.add(key)
                described: list[Event] = []
                if history.spec == UNSEEN_JOB:  # what was reported since is newer
                    spec = msgspec.structs.replace(extra, seen_submit=False)
                    self._job_registry.declare(name, history, spec)
                    described.append((time_s, ev.CHANGED, history.number, history.spec))
                return self._transitions.repaired("late_submission", described)
            begun = self._runs.start_delayed(name, history)
            ended = self._end(name, history, time_s)
            before = self._transitions.repaired("submitted_twice", begun + ended)
        history = self._job_registry.submit(name, extra, key, time_s)
        history.add(key)
        return [*before, (time_s, ev.SUBMITTED, history.number, extra)]

    def _end(self, name: str, history: JobHistory, time_s: float) -> list[Event]:
        """End a job that has left the site, though no source reported it."""
        self._recalled.discard(name)
        return self._transitions.end(name, history, time_s)

    def realign(
        self, jobs: Mapping[int, Job], joined: Sequence[bool], owned: Sequence[bool]
    ) -> set[int]:
        """Keep, after a fault, only the jobs and machines on which the engine agrees.

        Args:
            jobs: the engine's jobs, by number.
            joined: whether each of its machines is there, by number.
            owned: whether each of its machines is used by its owner, by number.

        Returns:
            The numbers of the jobs that are followed. Later events of any other job come after its
            end.
        """
        while stale := [
            (name, history)
            for name, history in self.jobs.items()
            if (job := jobs.get(history.number)) is None or not self._agrees(name, history, job)
        ]:
            for name, history in stale:  # a start that waited for its slot makes another one stale
                self._end(name, history, 0.0)
        self._machines.realign(joined, owned)
        return {history.number for history in self.jobs.values()}

    def waits_for_slot(self, name: str) -> bool:
        """Return whether the job's start is known, and delayed for its slot (see `Slots`)."""
        return self._runs.is_delayed(name, self.jobs[name])

    def _agrees(self, name: str, history: JobHistory, job: Job) -> bool:
        if self.waits_for_slot(name):  # the engine does not know of the start yet
            return job.state == QUEUED
        return history.agrees_with(job)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "jobs": self._job_registry.save(),
            "machines": self._machines.save(),
            "repairs": dict(self.repairs),
            "fuller": sorted(self._recalled),
            "slots": self._runs.save(),
            "names": None if self.names is None else self.names.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        if self.names is not None and saved.get("names") is not None:
            self.names.restore(saved["names"])
        self._job_registry.restore(saved["jobs"])
        self._machines.restore(saved["machines"])
        self.repairs.clear()
        self.repairs.update(saved["repairs"])
        self._recalled = set(saved["fuller"])
        self._runs.restore(saved["slots"])


# -- job transitions -------------------------------------------------------------------------------
# Meaning of a job event in the job's present state.


class JobTransitions:
    """Transitions of jobs from state to state, with the unreported ones in between.

    Args:
        jobs, machines: the known ones.
        repairs: counts of repairs, by kind.
    """

    def __init__(self, jobs: JobRegistry, machines: MachineRegistry, repairs: Counter[str]) -> None:
        self._jobs = jobs
        self._repairs = repairs
        self.runs = JobRuns(jobs, machines, repairs)

    def repaired(self, what: str, events: list[Event]) -> list[Event]:
        """Count a repair and return its events."""
        self._repairs[what] += 1
        return events

    def apply(
        self, time_s: float, kind: int, name: str, history: JobHistory, extra: Any
    ) -> list[Event]:
        """Return the steps a job event means in its present state. Raises `NotApplicableError`."""
        n = history.number
        if kind == ev.CHANGED:
            if "user" in extra:  # who named the user before does not vouch for this name
                extra = {"reporter": "", **extra}
            self._jobs.declare(name, history, msgspec.structs.replace(history.spec, **extra))
            return [(time_s, kind, n, history.spec)]
        if is_possible(kind, history.state):
            return self._step(time_s, kind, name, history, extra)
        running = history.state in (RUNNING, SUSPENDED)
        if kind == ev.STARTED and running:
            evicted = self.runs.evict(time_s, name, history, "unknown")
            return self.repaired(
                "end_unseen", evicted + self.runs.start(time_s, name, history, *extra)
            )
        if kind == ev.STARTED:
            released: Event = (time_s, ev.RELEASED, n, None)
            run = self.runs.start(time_s, name, history, *extra)
            return self.repaired("release_unseen", [released, *run])
        if kind == ev.HELD and running:  # a batch system may leave the eviction out
            evicted = self.runs.evict(time_s, name, history, "held")
            return evicted + self._step(time_s, kind, name, history, extra)
        lost = self.runs.take_lost(name)
        if lost is not None:
            return self._of_lost_run(time_s, kind, name, history, lost)
        if kind == ev.DISCONNECTED:
            return []  # from a machine on which its run had not begun yet
        if kind == ev.COMPLETED:
            return self.repaired("run_unseen", self.end(name, history, time_s))
        raise NotApplicableError(IMPOSSIBLE_STATE)

    def _step(
        self, time_s: float, kind: int, name: str, history: JobHistory, extra: Any
    ) -> list[Event]:
        """Return the steps of a possible transition."""
        n = history.number
        if kind == ev.STARTED:
            return self.runs.start(time_s, name, history, *extra)
        if kind == ev.EVICTED:
            return self.runs.evict(time_s, name, history, extra)
        if kind in (ev.COMPLETED, ev.REMOVED):
            return self.end(name, history, time_s, kind, extra)
        if kind == ev.DISCONNECTED:
            return self.runs.disconnect(time_s, name, history)
        if kind == ev.RECONNECTED:
            self.runs.reconnect(name, history)
            return []
        if kind == ev.RESIZED:
            return self.runs.resize(time_s, history, extra)
        history.state = AFTER[kind]
        return [(time_s, kind, n, extra)]

    def _of_lost_run(
        self, time_s: float, kind: int, name: str, history: JobHistory, lost: LostRun
    ) -> list[Event]:
        """Return the steps of an event after a run's assumed end: the real end, or continuation."""
        if kind == ev.EVICTED:
            return []
        if kind == ev.COMPLETED:
            went_on = [self.runs.went_on(history, lost)]
            ended = self.end(name, history, time_s, kind, None)
            return self.repaired("run_went_on", went_on + ended)
        if kind == ev.RECONNECTED:
            return self.repaired("run_went_on", self.runs.resume(time_s, history, lost))
        self.runs.keep_lost(name, lost)
        raise NotApplicableError(IMPOSSIBLE_STATE)

    def end(
        self, name: str, history: JobHistory, time_s: float, kind: int = ev.REMOVED,
        extra: Any = "unknown",
    ) -> list[Event]:  # fmt: skip
        """End a job that leaves the site."""
        next_run = self.runs.end_with_job(time_s, name, history)
        self._jobs.end(name, history)
        return [(time_s, kind, history.number, extra), *next_run]
