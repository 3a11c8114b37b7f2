"""Jobs named by sources: their numbers, their unique names, and those that ended."""

from collections import OrderedDict
from typing import Any, Final

import msgspec

from outrider.engine.ingest.bounded_names import FollowedJobs
from outrider.engine.ingest.set_aside import AFTER_END, NotApplicableError
from outrider.engine.state.packing import pack, unpack
from outrider.model import events as ev
from outrider.model.jobs import Job, JobSpec
from outrider.model.printable import clean_name

# -- job history -----------------------------------------------------------------------------------
# History of one job, by which repeated records of the same event are recognised.
#
# The same record reaches the daemon twice when a log is read again after a rotation or when two
# logs report the same job, one of them with a coarser clock. On the other hand a job can really
# start, be evicted and start again on the same machine within one tick of the log's clock. So the
# history of each job is kept in order, and three rules distinguish the cases:
#
# - a record that is in the history, although time or the job's state has moved past it, begins a
#   repetition; while a repetition lasts, records are matched against the rest of the history;
# - a record that equals one of the very latest moment, and is possible now, happened once more;
# - a record that is impossible now, or older than the latest, and near one of its kind in the
#   history, is the same event by another clock.

QUEUED, RUNNING, SUSPENDED, HELD, GONE = range(5)
_SAME_EVENT_MS: Final = 1_000
_LONGEST_HISTORY: Final = 256
"""Events of a job that are kept; the older half of them is forgotten beyond that."""
EventKey = tuple[int, int, Any]
"""Identity of an event: kind, time in milliseconds, and a detail (machine, reason)."""


class JobHistory:
    """Number, specification, state and history of one job.

    Attributes:
        number: its identity inside the engine.
        spec: as declared by its user.
        state: one of `QUEUED`, `RUNNING`, `SUSPENDED`, `HELD`, `GONE`.
        machine: number of the machine it runs on, -1 while it runs nowhere.
        cpus: CPUs of the present run.
        slot: the part of the machine that it runs on, empty where not known.
        name_bytes: length of its names, counted by the registry.
    """

    __slots__ = (
        "_history", "_repeated", "cpus", "machine", "name_bytes", "number", "slot", "spec", "state",
    )  # fmt: skip

    def __init__(self, number: int, spec: JobSpec) -> None:
        self.number = number
        self.spec = spec
        self.state = QUEUED
        self.machine = -1
        self.cpus = 1
        self.slot = ""
        self.name_bytes = 0
        self._history: list[EventKey] = []
        self._repeated = 0

    def add(self, key: EventKey) -> None:
        """Append an event that happened."""
        if self._repeated == len(self._history):
            self._repeated += 1
        self._history.append(key)
        if len(self._history) > _LONGEST_HISTORY:  # held and released, or edited, in a loop
            gone = _LONGEST_HISTORY // 2
            del self._history[:gone]
            self._repeated = max(0, self._repeated - gone)

    def is_past(self, key: EventKey) -> bool:
        """Return whether an event not in the history is as late as all known ones."""
        return key[1] >= self._history[-1][1] and key not in self._history

    def is_duplicate(self, key: EventKey, possible: bool) -> bool:
        """Return whether an event was reported before; `possible`: the present state allows it."""
        history = self._history
        if not history or (possible and key[1] > history[-1][1]):
            return False  # by far the most common: the next thing, later than all before
        passed = key[1] < history[-1][1]
        if key not in history:  # a dozen entries: an additional set would double the memory
            return (passed or not possible) and self._is_near(key)
        if self._repeated < len(history) and key in history[self._repeated :]:
            self._repeated = history.index(key, self._repeated) + 1
            return True
        if possible and not passed:
            return False
        self._repeated = history.index(key) + 1
        return True

    def _is_near(self, key: EventKey) -> bool:
        kind, ms, detail = key
        return any(
            k == kind and abs(m - ms) <= _SAME_EVENT_MS and (d == detail or None in (d, detail))
            for k, m, d in self._history
        )

    def agrees_with(self, job: Job) -> bool:
        """Return whether the engine has the job in the same state, on the same CPUs."""
        same = (job.state, job.machine) == (self.state, self.machine)
        return same and (self.machine < 0 or job.cpus == self.cpus)

    def pack(self) -> bytes:
        """Return everything in a few bytes: hundreds of thousands are kept, or saved."""
        return _ENCODER.encode(
            (self.number, self.state, self.machine, self.cpus, self.slot, self.spec,
             self._history, self._repeated)
        )  # fmt: skip

    @classmethod
    def unpack(cls, packed: bytes) -> "JobHistory":
        """Rebuild what `pack` returned. Raises `ValueError` if it is something else."""
        number, state, machine, cpus, slot, spec, history, repeated = _DECODER.decode(packed)
        job = cls(number, spec)
        job.state, job.machine, job.cpus, job.slot = state, machine, cpus, slot
        job._history = history
        job._repeated = repeated
        return job


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, int, int, int, str, JobSpec, list[EventKey], int])
AFTER: Final = {ev.SUSPENDED: SUSPENDED, ev.RESUMED: RUNNING, ev.HELD: HELD, ev.RELEASED: QUEUED}
"""State of a job after an event that is possible."""
_POSSIBLE: Final[dict[int, tuple[int, ...]]] = {
    ev.SUBMITTED: (),
    ev.STARTED: (QUEUED,),
    ev.EVICTED: (RUNNING, SUSPENDED),
    ev.COMPLETED: (RUNNING, SUSPENDED),
    ev.REMOVED: (QUEUED, RUNNING, SUSPENDED, HELD),
    ev.SUSPENDED: (RUNNING,),
    ev.RESUMED: (SUSPENDED,),
    ev.HELD: (QUEUED,),
    ev.RELEASED: (HELD,),
    ev.CHANGED: (QUEUED, RUNNING, SUSPENDED, HELD),
    ev.RESIZED: (RUNNING, SUSPENDED),
    ev.DISCONNECTED: (RUNNING, SUSPENDED),
    ev.RECONNECTED: (RUNNING, SUSPENDED),
}


def is_possible(kind: int, state: int) -> bool:
    """Return whether an event of a kind can happen to a job in a state."""
    return state in _POSSIBLE[kind]


def event_key(time_s: float, kind: int, extra: Any) -> EventKey:
    """Return the identity of an event: kind, moment, and machine or reason."""
    detail = None
    if kind == ev.STARTED:
        detail = extra[0]
    elif isinstance(extra, (str, int)) and kind != ev.HELD:  # two sources may phrase it differently
        detail = extra
    elif kind == ev.CHANGED:
        detail = clean_name(repr(extra))
    return kind, round(time_s * 1000), detail


# -- job registry ----------------------------------------------------------------------------------

MAX_ENDED: Final = 200_000
"""Number of ended jobs whose repeated records are still recognised."""
MAX_ENDED_BYTES: Final = 320 * MAX_ENDED
"""Bytes of their histories together; they have half as many on an ordinary site."""


class JobRegistry:
    """Jobs by the names that their sources give them.

    Args:
        followed: counts the jobs that are here, for the bound on them.

    Attributes:
        jobs: those that are here, by the name their source gives them.
        names: unique name of every job, by number: that name, unless another job had it before.
    """

    def __init__(self, followed: FollowedJobs) -> None:
        self.jobs: dict[str, JobHistory] = {}
        self.names: dict[int, str] = {}
        self._followed = followed
        self._ended_bytes = 0
        # packed: a history takes a kilobyte, and hundreds of thousands of jobs end in a busy week
        self._ended: OrderedDict[str, bytes] = OrderedDict()
        self._reused = ReusedNames()
        self._next = 0

    def name_at(self, name: str, time_ms: int) -> str:
        """Return the unique name of the job that a source called `name` then (milliseconds)."""
        return self._reused.at(name, time_ms)

    def known_by(self, own: str) -> JobHistory | None:
        """Return the job that is here under a unique name (see `names`), or None."""
        for name in (own, own.rpartition("#")[0]):
            history = self.jobs.get(name)
            if history is not None and self.names[history.number] == own:
                return history
        return None

    def is_known(self, own: str, history: JobHistory | None, key: EventKey) -> bool:
        """Return whether a recalled submission is of a known job, not of a later namesake."""
        if history is not None:
            return True
        return own in self._ended and not JobHistory.unpack(self._ended[own]).is_past(key)

    def is_duplicate(
        self, own: str, kind: int, key: EventKey, history: JobHistory | None, older: bool
    ) -> bool:
        """Return whether an event was reported before.

        Args:
            own: unique name of its job.
            kind: of the event.
            key: identity of the event.
            history: the job, if it is here.
            older: the event is of an earlier job of a name that another has now.

        Raises:
            NotApplicableError: it comes after its job's end.
        """
        if history is not None:
            return history.is_duplicate(key, is_possible(kind, history.state))
        if own in self._ended:
            if self._is_duplicate_of_ended(own, kind, key):
                return True
            if kind == ev.SUBMITTED and not older:
                return False
        elif not older:
            return False
        raise NotApplicableError(AFTER_END)

    def _is_duplicate_of_ended(self, own: str, kind: int, key: EventKey) -> bool:
        """Return whether an ended job had this event; add it to its history unless a submission."""
        history = JobHistory.unpack(self._ended[own])
        duplicate = history.is_duplicate(key, is_possible(kind, GONE))
        if not duplicate:
            if kind == ev.SUBMITTED:
                return False  # of the next job of this name
            history.add(key)
        self._set_ended(own, history.pack())
        return duplicate

    def _set_ended(self, own: str, packed: bytes) -> None:
        before = self._ended.get(own, b"")
        self._ended[own] = packed
        self._ended_bytes += len(packed) - len(before)

    def submit(self, name: str, spec: JobSpec, key: EventKey, time_s: float) -> JobHistory:
        """Add a submitted job; an ended one of the same name is a different job."""
        own = self._reused.at(name, key[1])
        if own in self._ended:  # the batch system restarted its numbering
            own = self._reused.use_again(name, own, time_s)
        return self.add(name, spec, own)

    def add(self, name: str, spec: JobSpec, own: str = "") -> JobHistory:
        """Give a job a number; its unique name is `own`, or the name that its source gives it."""
        history = self.jobs[name] = JobHistory(self._next, spec)
        self.names[self._next] = own or name
        self._next += 1
        history.name_bytes = _name_bytes(name, spec)
        self._followed.add(history.name_bytes)
        return history

    def declare(self, name: str, history: JobHistory, spec: JobSpec) -> None:
        """Replace the specification of a job."""
        history.spec = spec
        self._followed.change(-history.name_bytes)
        history.name_bytes = _name_bytes(name, spec)
        self._followed.change(history.name_bytes)

    def end(self, name: str, history: JobHistory) -> None:
        """Remove a job that has left. Its history is kept, for its records may be read again."""
        del self.jobs[name]
        self._followed.drop(history.name_bytes)
        self._set_ended(self.names[history.number], history.pack())
        while len(self._ended) > MAX_ENDED or self._ended_bytes > MAX_ENDED_BYTES:
            own, oldest = self._ended.popitem(last=False)
            self._ended_bytes -= len(oldest)
            self.names.pop(JobHistory.unpack(oldest).number, None)
            self._reused.forget(own)

    # -- snapshots ----------------------------------------------------------------------------

    def save(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "renamed": [
                [history.number, self.names[history.number]]
                for name, history in self.jobs.items()
                if self.names[history.number] != name
            ],
            "jobs": pack((name, history.pack()) for name, history in self.jobs.items()),
            "ended": pack(self._ended.items()),
            "next_job": self._next,
            "reused": self._reused.save(),
        }

    def restore(self, saved: dict[str, Any]) -> None:
        """Resume from what `save` returned."""
        self.jobs = {name: JobHistory.unpack(packed) for name, packed in unpack(saved["jobs"])}
        self._followed.clear()
        for name, history in self.jobs.items():
            history.name_bytes = _name_bytes(name, history.spec)
            self._followed.add(history.name_bytes)
        self._ended = OrderedDict((name, packed) for name, packed in unpack(saved["ended"]))
        self._ended_bytes = sum(map(len, self._ended.values()))
        self.names = {history.number: name for name, history in self.jobs.items()}
        self.names |= dict(saved["renamed"])
        for own, packed in self._ended.items():
            self.names[JobHistory.unpack(packed).number] = own
        self._next = saved["next_job"]
        self._reused.restore(saved["reused"])


def _name_bytes(name: str, spec: JobSpec) -> int:
    """Return the length of all names of a job, which snapshots repeat for each job."""
    names = name + spec.user + spec.vo + spec.job_class + spec.eligible
    return len(names) if names.isascii() else len(names.encode())


# -- reused names ----------------------------------------------------------------------------------
# Names that a batch system gave to more than one job, and the unique names of these jobs.

_NEAR_MS: Final = 1_000  # two logs of one submission may differ by a second


class ReusedNames:
    """Unique names of jobs that were given the same name, one after the other.

    A schedd whose SPOOL was reset, or a Slurm controller that restarts its numbering, gives ids
    out again. The first job of a name keeps it; each later one is named ``NAME#QDATE``, QDATE being
    the second of its submission (Unix time). Only names that were used again are kept here, so on
    an ordinary site an event costs one look into an empty dictionary.
    """

    def __init__(self) -> None:
        self._jobs: dict[str, list[tuple[int, str]]] = {}

    def use_again(self, name: str, before: str, submit_s: float) -> str:
        """Name a submitted job whose name another job had.

        Args:
            name: the name that its source gives it.
            before: the unique name of the job before it.
            submit_s: Unix time.

        Returns:
            the unique name of the new job.
        """
        jobs = self._jobs.setdefault(name, [(0, before)])
        taken = {known for _, known in jobs}
        second = int(submit_s)
        while (own := f"{name}#{second}") in taken:
            second += 1
        jobs.append((round(submit_s * 1000), own))
        return own

    def at(self, name: str, ms: int) -> str:
        """Return the unique name of the job that a record of this time means by a name."""
        jobs = self._jobs.get(name)
        if jobs is None:
            return name
        began = [own for began_ms, own in jobs if began_ms <= ms + _NEAR_MS]
        return began[-1] if began else jobs[0][1]

    def forget(self, own: str) -> None:
        """Forget the job with this unique name."""
        for name in (own, own.rpartition("#")[0]):
            jobs = [entry for entry in self._jobs.get(name, ()) if entry[1] != own]
            if jobs:
                self._jobs[name] = jobs
            else:
                self._jobs.pop(name, None)

    def save(self) -> Any:
        """Return everything as plain data."""
        return {name: [list(entry) for entry in jobs] for name, jobs in self._jobs.items()}

    def restore(self, saved: Any) -> None:
        """Resume from what `save` returned."""
        self._jobs = {
            name: [(began_ms, own) for began_ms, own in jobs] for name, jobs in saved.items()
        }
