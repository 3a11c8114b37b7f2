"""What is known of one job, and whether the next event about it was told before.

The same record reaches the daemon twice when a log is read again after a rotation or when two
logs tell of the same job, one of them with a coarser clock. On the other hand a job can really
start, be evicted and start again on the same machine within one tick of the log's clock. So the
history of each job is kept in order, and three rules tell the cases apart:

- a record that is in the history, although time or the job's state has moved past it, begins a
  retelling; while a retelling lasts, records are matched against the rest of the history;
- a record that equals one of the very latest moment, and is possible now, happened once more;
- a record that is impossible now, or older than the latest, and near one of its kind in the
  history, is the same thing by another clock.
"""

from typing import Any, Final

import msgspec

from outrider.model import events as ev
from outrider.model.jobs import Job, JobSpec

QUEUED, RUNNING, SUSPENDED, HELD, GONE = range(5)
_NEAR_MS: Final = 1_000

EventKey = tuple[int, int, Any]
"""Kind, time in milliseconds, and what tells two events of a kind apart (machine, reason)."""


class JobHistory:
    """Number, specification, state and history of one job.

    Attributes:
        number: its identity inside the engine.
        spec: what its user said.
        state: one of `QUEUED`, `RUNNING`, `SUSPENDED`, `HELD`, `GONE`.
        machine: number of the machine it runs on, -1 while it runs nowhere.
        cpus: CPUs of the present run.
        slot: the part of the machine that it runs on, empty where not known.
    """

    __slots__ = ("_history", "_retold", "cpus", "machine", "number", "slot", "spec", "state")

    def __init__(self, number: int, spec: JobSpec) -> None:
        self.number = number
        self.spec = spec
        self.state = QUEUED
        self.machine = -1
        self.cpus = 1
        self.slot = ""
        self._history: list[EventKey] = []
        self._retold = 0

    def add(self, key: EventKey) -> None:
        """Note an event that happened."""
        if self._retold == len(self._history):
            self._retold += 1
        self._history.append(key)

    def is_past(self, key: EventKey) -> bool:
        """Whether everything known of the job had happened by then, and not this."""
        return key[1] >= self._history[-1][1] and key not in self._history

    def was_told(self, key: EventKey, possible: bool) -> bool:
        """Whether an event was told before; `possible`: it could happen in the present state."""
        history = self._history
        if not history or (possible and key[1] > history[-1][1]):
            return False  # by far the most common: the next thing, later than all before
        passed = key[1] < history[-1][1]
        if key not in history:  # a dozen entries: a set beside them would double the memory
            return (passed or not possible) and self._is_near(key)
        if self._retold < len(history) and key in history[self._retold :]:
            self._retold = history.index(key, self._retold) + 1
            return True
        if possible and not passed:
            return False
        self._retold = history.index(key) + 1
        return True

    def _is_near(self, key: EventKey) -> bool:
        kind, ms, detail = key
        return any(
            k == kind and abs(m - ms) <= _NEAR_MS and (d == detail or None in (d, detail))
            for k, m, d in self._history
        )

    def agrees_with(self, job: Job) -> bool:
        """Whether the engine has the job in the same state, on the same CPUs."""
        same = (job.state, job.machine) == (self.state, self.machine)
        return same and (self.machine < 0 or job.cpus == self.cpus)

    def pack(self) -> bytes:
        """Everything in a few bytes: to be remembered by the hundred thousand, or saved."""
        return _ENCODER.encode(
            (self.number, self.state, self.machine, self.cpus, self.slot, self.spec,
             self._history, self._retold)
        )  # fmt: skip

    @classmethod
    def unpack(cls, packed: bytes) -> "JobHistory":
        """Rebuild what `pack` gave. Raises `ValueError` if it is something else."""
        number, state, machine, cpus, slot, spec, history, retold = _DECODER.decode(packed)
        job = cls(number, spec)
        job.state, job.machine, job.cpus, job.slot = state, machine, cpus, slot
        job._history = history
        job._retold = retold
        return job


_ENCODER = msgspec.msgpack.Encoder()
_DECODER = msgspec.msgpack.Decoder(tuple[int, int, int, int, str, JobSpec, list[EventKey], int])


AFTER: Final = {ev.SUSPENDED: SUSPENDED, ev.RESUMED: RUNNING, ev.HELD: HELD, ev.RELEASED: QUEUED}
"""The state of a job after an event that is possible."""
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
    """Whether an event of a kind can happen to a job in a state."""
    return state in _POSSIBLE[kind]


def event_key(time_s: float, kind: int, extra: Any) -> EventKey:
    """What makes an event the same as another: kind, moment, and machine or reason."""
    detail = None
    if kind == ev.STARTED:
        detail = extra[0]
    elif isinstance(extra, (str, int)) and kind != ev.HELD:  # words that two sources put otherwise
        detail = extra
    elif kind == ev.CHANGED:
        detail = repr(extra)
    return kind, round(time_s * 1000), detail
