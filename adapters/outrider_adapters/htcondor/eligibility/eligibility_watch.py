"""Classes of machines: which of them jobs of a kind may use, told anew when that changes."""

import time
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.eligibility.clauses import referred_to
from outrider_adapters.htcondor.eligibility.kinds import (
    MOST_ASKED,
    REQUIREMENTS,
    WHOLE,
    JobKind,
    JobKinds,
    SlotKinds,
    as_idle,
    shape_of,
)
from outrider_adapters.htcondor.eligibility.matching import Matching, matching
from outrider_adapters.htcondor.machines import MadeOfAds
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.readers.htcondor.job_ads import machine_of_slot

_NOT_DYNAMIC: Final = "DynamicSlot =!= true"
_ALWAYS: Final = frozenset({"name", "requirements", "start", "partitionableslot"})
_ROUNDS: Final = 5
"""How often it is asked again for attributes that those of the last answer depend on."""

_BUDGET_S: Final = 1.0
"""Seconds of one look that classes may take; the others are told at the next."""

_FORGET_S: Final = 3_600.0
"""A kind of which no job was seen for so long is told of no more."""


class _IdleSlot(NamedTuple):
    """A slot as it would be without jobs and owner, its text, and what in it is expressions."""

    ad: Any
    text: str
    shape: tuple[str, ...]


class EligibilityWatch:
    """Which machines the jobs of a pool may use, as far as their ads and those of slots say.

    A slot counts as it is without jobs and owner; who is there now is told as the machine's state.

    Args:
        calls: the pool.
        refresh_s: how long the slots' requirements are believed.
    """

    def __init__(self, calls: PoolCalls, refresh_s: float) -> None:
        self._calls = calls
        self._refresh_s = refresh_s
        self._jobs = JobKinds()
        self._slots = SlotKinds([])
        self._idle = MadeOfAds(_idle_slot)
        self._slot_texts: list[str] = []
        self._machines: list[str] = []
        self._present: set[str] = set()
        self._looked_s = -inf
        self._asked = set(_ALWAYS)
        self._due: dict[str, None] = {}
        self._told: dict[str, frozenset[str]] = {}

    @property
    def version(self) -> tuple[bool, int]:
        """Another one whenever the same ad of a job may have come to another class."""
        return self._looked_s > -inf, self._jobs.version

    def ask(
        self, query: Callable[[list[str]], Sequence[Any]], attributes: Iterable[str]
    ) -> Sequence[Any]:
        """The ads of jobs, with all that says which machines they may use.

        Args:
            query: asks a queue for these attributes.
            attributes: those that are wanted beside.
        """
        return self._jobs.ask(query, attributes)

    def class_of(self, ad: Any) -> str:
        """The class of machines that a job may use, by its ad from `ask`; empty if not known."""
        if self._looked_s == -inf:
            return ""
        name = self._jobs.name_of(ad)
        self.saw(name)
        return name

    def saw(self, name: str) -> None:
        """There is a job of this class still; so it is told, and kept."""
        if name:
            self._jobs.saw(name, self._looked_s)
            if name not in self._told:
                self._due[name] = None

    def look_at_slots(self, now_s: float) -> None:
        """Ask what the slots require, if it is time to.

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
        """Return whether a machine was in the pool when it was asked last."""
        return machine in self._present

    def news(self, now_s: float, told_s: float) -> list[NamedEvent]:
        """The classes that are new or hold other machines than were told.

        Args:
            now_s: Unix seconds.
            told_s: the time of the events.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        self.look_at_slots(now_s)
        until_s = time.monotonic() + _BUDGET_S
        told: list[NamedEvent] = []
        while self._due:
            name = next(iter(self._due))
            del self._due[name]
            machines = self._machines_of(self._jobs.kinds[name])
            before = self._told.get(name)
            if before is None or before & self._present != machines:
                self._told[name] = machines
                told.append((told_s, events.ELIGIBLE, name, tuple(sorted(machines))))
            if time.monotonic() >= until_s:  # at least one a look, however slow
                break
        return told

    def matching(self, ad: Any) -> Matching | None:
        """How a job, by its ad from `ask`, and the pool meet; None where that is not known."""
        kind = self._jobs.kinds.get(self.class_of(ad))
        return None if kind is None else matching(kind, self._slots, self._machines)

    @property
    def is_done(self) -> bool:
        """True if every class has been told as it is now."""
        return not self._due

    def _machines_of(self, kind: JobKind) -> frozenset[str]:
        """The machines with a slot that a kind of job and that accept each other."""
        matching = self._slots.everyone
        for demand in kind.demands:
            matching &= self._slots.passing(demand)
        matching &= self._slots.accepting(kind.ad) if matching else 0
        return frozenset(machine for at, machine in enumerate(self._machines) if matching >> at & 1)

    def _forget(self, now_s: float) -> None:
        """Forget what nobody has asked for of late, and what only that needed."""
        for name in self._jobs.forget(now_s - max(_FORGET_S, 3.0 * self._refresh_s)):
            self._told.pop(name, None)
            self._due.pop(name, None)
        if len(self._asked) > MOST_ASKED:
            self._asked = set(_ALWAYS)


def _with_whole(names: set[str]) -> set[str]:
    """Attributes of slots, and how much of each a partitionable slot has in all."""
    return names | {f"{WHOLE.lower()}{name}" for name in names if not name.startswith("total")}


def _idle_slot(ad: Any) -> _IdleSlot:
    idle = as_idle(ad)
    return _IdleSlot(idle, str(idle), shape_of(idle, idle))


def _read_by(slots: Iterable[_IdleSlot]) -> set[str]:
    """What the requirements of slots depend on."""
    alike = {slot.shape: slot.ad for slot in slots}
    ours = (REQUIREMENTS, "Start")
    return set().union(*(referred_to(ad, name) for ad in alike.values() for name in ours))
