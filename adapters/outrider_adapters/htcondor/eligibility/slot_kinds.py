"""The slots of a pool as jobs' requirements see them, without jobs and owners."""

from collections.abc import Iterable, Sequence
from typing import Any, Final

from outrider_adapters.htcondor.bindings import ClassAd, ClassAdException, ExprTree
from outrider_adapters.htcondor.eligibility.clauses import NEVER, Clause, clause, demands
from outrider_adapters.htcondor.pool_calls import number

WHOLE: Final = "TotalSlot"
"""Before the name of a resource: how much of it a partitionable slot has in all."""

_AS_IDLE: Final = {
    "state": "Unclaimed",
    "activity": "Idle",
    "keyboardidle": 10_000_000,
    "consoleidle": 10_000_000,
    "loadavg": 0.0,
    "condorloadavg": 0.0,
    "totalloadavg": 0.0,
    "totalcondorloadavg": 0.0,
    "currentrank": 0.0,
}
"""What makes a slot busy passes, and is told as the machine's state; here it counts as idle."""

REQUIREMENTS: Final = "Requirements"
_MOST_KEPT: Final = 5_000
"""Clauses of jobs, and combinations of values that slots read of them, that are remembered."""


class SlotKinds:
    """Slots, of which many answer alike; sets of slots are integers, a bit each.

    Args:
        ads: of the slots that are not dynamic, from `as_idle`.

    Attributes:
        reads: attributes of jobs that the slots' own requirements read, in small letters.
    """

    def __init__(self, ads: Iterable[Any]) -> None:
        self._ads = list(ads)
        self._passing: dict[str, int] = {}
        self._alike: dict[tuple[str, ...], list[tuple[Any, int]]] = {}
        self._conditions: dict[tuple[str, ...], dict[str, tuple[Clause, int]]] = {}
        """By what they read of a job: conditions by their text, and the slots that make each."""
        self._refusing: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        self._find_conditions()
        self.reads = {name for reads in self._conditions for name in reads}

    @property
    def everyone(self) -> int:
        """All slots."""
        return (1 << len(self._ads)) - 1

    def passing(self, demand: Clause) -> int:
        """The slots of which a clause of a job's requirements is true."""
        known = self._passing.get(demand.text)
        if known is None:
            if len(self._passing) > _MOST_KEPT:
                self._passing.clear()
            known = 0
            for ad, slots in self._grouped(demand.reads):
                if demand.holds(ad):
                    known |= slots
            self._passing[demand.text] = known
        return known

    def accepting(self, job: Any) -> int:
        """The slots whose own requirements are true of a job's ad."""
        refusing = 0
        for reads, conditions in self._conditions.items():
            said = reads, values(job, reads)
            known = self._refusing.get(said)
            if known is None:
                known = 0
                for condition, slots in conditions.values():
                    if not condition.holds(job):
                        known |= slots
                if len(self._refusing) > _MOST_KEPT:
                    self._refusing.clear()
                self._refusing[said] = known
            refusing |= known
        return self.everyone & ~refusing

    def offering(self, attribute: str) -> list[tuple[float, int]]:
        """How much of an attribute slots have, each amount with its slots."""
        found: dict[float, int] = {}
        for ad, slots in self._grouped((attribute,)):
            amount = number(ad, attribute)
            found[amount] = found.get(amount, 0) | slots
        return list(found.items())

    def _find_conditions(self) -> None:
        found: dict[tuple[str, ...], list[Clause]] = {}
        for at, ad in enumerate(self._ads):
            read = sorted({REQUIREMENTS, *ad.internalRefs(ad.lookup(REQUIREMENTS))})
            same = values(ad, read)
            if same not in found:
                found[same] = _conditions(ad)
            for one in found[same]:
                alike = self._conditions.setdefault(one.reads, {})
                _, slots = alike.get(one.text, (one, 0))
                alike[one.text] = one, slots | 1 << at

    def _grouped(self, reads: tuple[str, ...]) -> Sequence[tuple[Any, int]]:
        """An ad and the slots for every combination of values of some attributes."""
        groups = self._alike.get(reads)
        if groups is None:
            found: dict[tuple[str, ...], tuple[Any, int]] = {}
            for at, ad in enumerate(self._ads):
                same = values(ad, reads)
                first, slots = found.get(same, (ad, 0))
                found[same] = first, slots | 1 << at
            groups = self._alike[reads] = list(found.values())
        return groups


def _conditions(ad: Any) -> list[Clause]:
    """What a slot asks of jobs; nothing where that is nested too deeply to be read."""
    try:
        return [clause(text) for text in demands(ad, REQUIREMENTS) if text != NEVER]
    except ClassAdException:
        return []


def values(ad: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Attributes of an ad as HTCondor writes them; empty where it has none."""
    return tuple(str(ad.lookup(name)) if name in ad else "" for name in names)


def as_idle(ad: Any) -> Any:
    """A slot's ad as it would be without jobs and owner: partitionable slots are whole."""
    idle = ClassAd()
    is_partitionable = ad.get("PartitionableSlot") is True
    for name, value in ad.items():
        told = f"{WHOLE}{name}"
        whole = ad.get(told) if is_partitionable and told in ad else value
        idle[name] = _AS_IDLE.get(name.lower(), whole)
    if REQUIREMENTS not in idle:
        idle[REQUIREMENTS] = ad.lookup("Start") if "Start" in ad else ExprTree("true")
    return idle
