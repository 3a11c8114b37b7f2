"""Classes of machines that each kind of job may use, reported again when they change."""

import time
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.eligibility.clauses import referred_to
from outrider_adapters.htcondor.eligibility.kinds import (
    MAX_QUERIED,
    REQUIREMENTS,
    WHOLE,
    JobKind,
    JobKinds,
    SlotKinds,
    as_idle,
    shape_of,
)
from outrider_adapters.htcondor.eligibility.matching import Matching, matching
from outrider_adapters.htcondor.machines import AdCache
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

_NOT_DYNAMIC: Final = "DynamicSlot =!= true"
_ALWAYS: Final = frozenset({"name", "requirements", "start", "partitionableslot"})
_ROUNDS: Final = 5
"""Maximum number of queries until all attributes that others depend on are known."""

_BUDGET_S: Final = 1.0
"""Seconds of one look that classes may take; the rest is reported at the next look."""

_FORGET_S: Final = 3_600.0
"""Seconds without a job after which a kind is forgotten."""


class _IdleSlot(NamedTuple):
    """A slot's ad without jobs and owner, its text, and its expressions."""

    ad: Any
    text: str
    shape: tuple[str, ...]


class EligibilityWatch:
    """Watch on the machines that jobs of a pool may use, by the ads of jobs and slots.

    A slot is judged without its jobs and owner; these are reported as the machine's state.

    Args:
        calls: calls to the pool.
        refresh_s: seconds for which the slots' requirements are cached.
    """

    def __init__(self, calls: PoolCalls, refresh_s: float) -> None:
        self._calls = calls
        self._refresh_s = refresh_s
        self._jobs = JobKinds()
        self._slots = SlotKinds([])
        self._idle = AdCache(_idle_slot)
        self._slot_texts: list[str] = []
        self._machines: list[str] = []
        self._present: set[str] = set()
        self._looked_s = -inf
        self._asked = set(_ALWAYS)
        self._due: dict[str, None] = {}
        self._last_reported: dict[str, frozenset[str]] = {}

    @property
    def version(self) -> tuple[bool, int]:
        """Version that changes whenever the same job ad may belong to another class."""
        return self._looked_s > -inf, self._jobs.version

    def ask(
        self, query: Callable[[list[str]], Sequence[Any]], attributes: Iterable[str]
    ) -> Sequence[Any]:
        """Return the ads of jobs, with all attributes that determine their machines.

        Args:
            query: queries a queue for these attributes.
            attributes: further attributes that are wanted.
        """
        return self._jobs.ask(query, attributes)

    def class_of(self, ad: Any) -> str:
        """Return the class of machines for a job, by its ad from `ask`; empty if unknown."""
        if self._looked_s == -inf:
            return ""
        name = self._jobs.name_of(ad)
        self.mark_seen(name)
        return name

    def mark_seen(self, name: str) -> None:
        """Mark a class as still in use by a job, so that it is reported and kept."""
        if name:
            self._jobs.mark_seen(name, self._looked_s)
            if name not in self._last_reported:
                self._due[name] = None

    def look_at_slots(self, now_s: float) -> None:
        """Query the slots' requirements if the cached ones have expired.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        is_old = not 0.0 <= now_s - self._looked_s < self._refresh_s
        if not is_old and _with_whole(self._jobs.read_of_slots) <= self._asked:
            return
        self._forget(now_s)
        for _ in range(_ROUNDS):
            asked = sorted(self._asked)
            ads = self._calls.collector.query(self._calls.slot_ads, _NOT_DYNAMIC, asked)
            self._idle.age()
            slots = [self._idle.of(ad) for ad in ads]
            wanted = _with_whole(self._jobs.read_of_slots | _read_by(slots))
            if wanted <= self._asked:
                break
            self._asked |= wanted
        self._looked_s = now_s
        texts = [slot.text for slot in slots]
        if texts != self._slot_texts:
            self._slot_texts = texts
            self._machines = [machine_of_slot(str(ad["Name"])) for ad in ads]
            self._present = set(self._machines)
            self._slots = SlotKinds(slot.ad for slot in slots)
            self._jobs.are_read_by_slots(self._slots.reads)
            self._due = dict.fromkeys(self._jobs.kinds)

    def knows(self, machine: str) -> bool:
        """Return whether a machine was in the pool at the last query."""
        return machine in self._present

    def news(self, now_s: float, event_s: float) -> list[NamedEvent]:
        """Return the classes that are new or whose machines have changed.

        Args:
            now_s: Unix seconds.
            event_s: the time of the events.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        self.look_at_slots(now_s)
        until_s = time.monotonic() + _BUDGET_S
        new_events: list[NamedEvent] = []
        while self._due:
            name = next(iter(self._due))
            del self._due[name]
            machines = self._machines_of(self._jobs.kinds[name])
            before = self._last_reported.get(name)
            if before is None or before & self._present != machines:
                self._last_reported[name] = machines
                new_events.append((event_s, events.ELIGIBLE, name, tuple(sorted(machines))))
            if time.monotonic() >= until_s:  # at least one a look, however slow
                break
        return new_events

    def matching(self, ad: Any) -> Matching | None:
        """Return the match of a job, by its ad from `ask`, with the pool; None if unknown."""
        kind = self._jobs.kinds.get(self.class_of(ad))
        return None if kind is None else matching(kind, self._slots, self._machines)

    @property
    def is_done(self) -> bool:
        """True if the current state of every class has been reported."""
        return not self._due

    def _machines_of(self, kind: JobKind) -> frozenset[str]:
        """Return the machines with a slot that matches a kind of job, in both directions."""
        matching = self._slots.everyone
        for demand in kind.demands:
            matching &= self._slots.passing(demand)
        matching &= self._slots.accepting(kind.ad) if matching else 0
        return frozenset(machine for at, machine in enumerate(self._machines) if matching >> at & 1)

    def _forget(self, now_s: float) -> None:
        """Forget kinds of jobs that were not seen recently, and their attributes."""
        for name in self._jobs.forget(now_s - max(_FORGET_S, 3.0 * self._refresh_s)):
            self._last_reported.pop(name, None)
            self._due.pop(name, None)
        if len(self._asked) > MAX_QUERIED:
            self._asked = set(_ALWAYS)


def _with_whole(names: set[str]) -> set[str]:
    """Return attributes of slots, and their totals in a partitionable slot."""
    return names | {f"{WHOLE.lower()}{name}" for name in names if not name.startswith("total")}


def _idle_slot(ad: Any) -> _IdleSlot:
    idle = as_idle(ad)
    return _IdleSlot(idle, str(idle), shape_of(idle, idle))


def _read_by(slots: Iterable[_IdleSlot]) -> set[str]:
    """Return the attributes that the requirements of slots depend on."""
    by_shape = {slot.shape: slot.ad for slot in slots}
    ours = (REQUIREMENTS, "Start")
    return set().union(*(referred_to(ad, name) for ad in by_shape.values() for name in ours))
