"""Classes of machines: which of them jobs of a kind may use, told anew when that changes."""

import hashlib
import time
from collections.abc import Callable, Iterable, Sequence
from math import inf
from typing import Any, Final, NamedTuple

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.bindings import ClassAdException, ExprTree
from outrider_adapters.htcondor.eligibility.clauses import (
    Clause,
    clause,
    demands,
    evaluated,
    referred_to,
)
from outrider_adapters.htcondor.eligibility.slot_kinds import (
    REQUIREMENTS,
    WHOLE,
    SlotKinds,
    as_idle,
    values,
)
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.readers.htcondor.hosts import machine_of_slot

_NOT_DYNAMIC: Final = "DynamicSlot =!= true"
_ALWAYS: Final = frozenset({"name", "requirements", "start", "partitionableslot"})
_ROUNDS: Final = 5
"""How often it is asked again for attributes that those of the last answer depend on."""

_BUDGET_S: Final = 1.0
"""Seconds of one look that classes may take; the others are told at the next."""

_FORGET_S: Final = 3_600.0
"""A kind of which no job was seen for so long is told of no more."""

_MOST_KINDS: Final = 900
"""More kinds of jobs have no class: they may use every machine, as far as is known."""

_MOST_REMEMBERED: Final = 5_000
"""Combinations of values and of expressions; what they lead to is found again."""

_LONGEST: Final = 20_000
_MOST_READ: Final = 200
_MOST_ASKED: Final = 1_000
"""Characters of the expressions of a job, attributes that they read, and attributes that are asked
for in all. Users write these: what goes beyond has no class."""


class _Kind(NamedTuple):
    """Jobs that ask the same: what slots read of them, and what they demand of slots."""

    ad: Any
    demands: tuple[Clause, ...]


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
        self._slots: SlotKinds | None = None
        self._slot_texts: list[str] = []
        self._machines: list[str] = []
        self._looked_s = -inf
        self._asked_of_slots = set(_ALWAYS)
        self._read_of_slots: set[str] = set()
        self._asked_of_jobs = {REQUIREMENTS.lower()}
        self._reads: dict[tuple[str, ...], set[str]] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self._kinds: dict[str, _Kind] = {}
        self._seen_s: dict[str, float] = {}
        self._due: dict[str, None] = {}
        self._told: dict[str, frozenset[str]] = {}

    # -- jobs ---------------------------------------------------------------------------------

    def ask(
        self, query: Callable[[list[str]], Sequence[Any]], attributes: Iterable[str]
    ) -> Sequence[Any]:
        """The ads of jobs, with all that says which machines they may use.

        Args:
            query: asks a queue for these attributes.
            attributes: those that are wanted beside.
        """
        beside = list(attributes)
        for _ in range(_ROUNDS):
            ads = query([*beside, *sorted(self._asked_of_jobs)])
            missing = self._learn(ads) - self._asked_of_jobs
            if not missing:
                break
            self._asked_of_jobs |= missing
        return ads

    def class_of(self, ad: Any) -> str:
        """The class of machines that a job may use, by its ad from `ask`; empty if not known."""
        if self._slots is None or REQUIREMENTS not in ad:
            return ""
        reads = self._reads.get(_shape(ad))
        if not reads:
            return ""
        same = values(ad, sorted(reads | self._slots.reads))
        name = self._names.get(same)
        if name is None:
            name = self._names[same] = self._kind_of(ad, self._slots)
        if name:
            self._seen_s[name] = self._looked_s
        return name

    def _kind_of(self, ad: Any, slots: SlotKinds) -> str:
        try:
            asks = tuple(dict.fromkeys(demands(ad, REQUIREMENTS)))
            own = evaluated(ad, slots.reads)
            kind = _Kind(own, tuple(map(clause, asks)))
        except ClassAdException:
            return ""
        said = "\0".join([*asks, "", *values(own, sorted(slots.reads))])
        name = f"requirements-{hashlib.sha256(said.encode(errors='replace')).hexdigest()[:10]}"
        if name in self._kinds:
            return name
        reads = self._read_of_slots.union(*(demand.reads for demand in kind.demands))
        if len(self._kinds) >= _MOST_KINDS or len(reads) > _MOST_ASKED:
            return ""
        self._kinds[name], self._read_of_slots, self._due[name] = kind, reads, None
        return name

    def _learn(self, ads: Iterable[Any]) -> set[str]:
        """What these jobs' requirements depend on, of jobs and slots."""
        if len(self._reads) + len(self._names) > _MOST_REMEMBERED:
            self._reads.clear()
            self._names.clear()
        learned: set[str] = set()
        for ad in ads:
            shape = _shape(ad)
            known = shape in self._reads or sum(map(len, shape)) > _LONGEST
            if known or REQUIREMENTS not in ad:
                continue
            reads = referred_to(ad, REQUIREMENTS)
            if len(reads) > _MOST_READ or len(self._asked_of_jobs | learned | reads) > _MOST_ASKED:
                reads = set()
            self._reads[shape] = reads
            learned |= reads
        return learned

    # -- slots --------------------------------------------------------------------------------

    def look_at_slots(self, now_s: float) -> None:
        """Ask what the slots require, if it is time to.

        Raises:
            HTCondorException: the collector does not answer (`PoolCalls.failure`).
        """
        is_old = not 0.0 <= now_s - self._looked_s < self._refresh_s
        if not is_old and self._with_whole(self._read_of_slots) <= self._asked_of_slots:
            return
        for _ in range(_ROUNDS):
            asked = sorted(self._asked_of_slots)
            ads = self._calls.collector.query(self._calls.slot_ads, _NOT_DYNAMIC, asked)
            wanted = self._with_whole(self._read_of_slots | _read_by(ads))
            if wanted <= self._asked_of_slots:
                break
            self._asked_of_slots |= wanted
        self._looked_s = now_s
        self._forget(now_s)
        idle = [as_idle(ad) for ad in ads]
        texts = list(map(str, idle))
        if texts != self._slot_texts:
            self._slot_texts = texts
            self._machines = [machine_of_slot(str(ad["Name"])) for ad in ads]
            self._slots = SlotKinds(idle)
            self._asked_of_jobs |= self._slots.reads
            self._due = dict.fromkeys(self._kinds)

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
        present = set(self._machines)
        while self._due and time.monotonic() < until_s:
            name = next(iter(self._due))
            del self._due[name]
            machines = self._machines_of(self._kinds[name])
            before = self._told.get(name)
            if before is None or before & present != machines:
                self._told[name] = machines
                told.append((told_s, events.ELIGIBLE, name, tuple(sorted(machines))))
        return told

    @property
    def is_done(self) -> bool:
        """Whether every class has been told as it is now."""
        return not self._due

    def _machines_of(self, kind: _Kind) -> frozenset[str]:
        """The machines with a slot that a kind of job and that accept each other."""
        slots = self._slots
        if slots is None:
            return frozenset()
        matching = slots.everyone
        for demand in kind.demands:
            matching &= slots.passing(demand)
        matching &= slots.accepting(kind.ad) if matching else 0
        return frozenset(machine for at, machine in enumerate(self._machines) if matching >> at & 1)

    def _forget(self, now_s: float) -> None:
        keep_s = max(_FORGET_S, 3.0 * self._refresh_s)
        for name in [name for name, at_s in self._seen_s.items() if now_s - at_s > keep_s]:
            del self._seen_s[name], self._kinds[name]
            self._told.pop(name, None)
            self._due.pop(name, None)
        self._names = {same: name for same, name in self._names.items() if name in self._kinds}

    @staticmethod
    def _with_whole(names: set[str]) -> set[str]:
        """Attributes of slots, and how much of each a partitionable slot has in all."""
        return names | {f"{WHOLE.lower()}{name}" for name in names if not name.startswith("total")}


def _shape(ad: Any) -> tuple[str, ...]:
    """The expressions of an ad: what else it depends on is a matter of these alone."""
    return tuple(str(value) for value in ad.values() if isinstance(value, ExprTree))


def _read_by(ads: Iterable[Any]) -> set[str]:
    """What the requirements of slots depend on."""
    shapes = {_shape(ad): ad for ad in ads}
    return {
        name
        for ad in shapes.values()
        for of in (REQUIREMENTS, "Start")
        for name in referred_to(ad, of)
    }
