"""Kinds of jobs and kinds of slots: what each asks, and which are the same."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.eligibility.clauses import (
    NEVER,
    Clause,
    clause,
    demands,
    evaluated,
    referred_to,
)
from outrider_adapters.htcondor.machines import MadeOfAds
from outrider_adapters.htcondor.pool_calls import ClassAd, ClassAdException, ExprTree, number

# -- job kinds -------------------------------------------------------------------------------------
# Kinds of jobs: those that ask the same of slots, and of which slots read the same.

_ROUNDS: Final = 5
"""How often it is asked again for attributes that those of the last answer depend on."""
_MOST_KINDS: Final = 900
"""More kinds of jobs have no class: they may use every machine, as far as is known."""
_MOST_SHAPES: Final = 5_000
_MOST_NAMES: Final = 30_000
"""Combinations of expressions, and of values, that are remembered; beyond, they are read again."""
_LONGEST: Final = 20_000
_MOST_READ: Final = 200
MOST_ASKED: Final = 1_000
"""Characters of the expressions of a job, attributes that they read, and attributes that are asked
for in all. Users write these: what goes beyond has no class."""


class JobKind(NamedTuple):
    """Jobs that ask the same.

    Attributes:
        ad: what slots read of them.
        demands: what they demand of slots.
    """

    ad: Any
    demands: tuple[Clause, ...]


class JobKinds:
    """Finds the kind of a job, and asks for as many attributes of jobs as that takes.

    Attributes:
        kinds: by name; the name is the same wherever the same is asked.
        read_of_slots: attributes that their demands read, in small letters.
        read_by_slots: attributes of jobs that slots read, in small letters.
        version: another number whenever the same ad may have come to another name.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, JobKind] = {}
        self.read_of_slots: set[str] = set()
        self.read_by_slots: set[str] = set()
        self._asked = {REQUIREMENTS.lower()}
        self._reads: dict[tuple[str, ...], set[str]] = {}
        self._reads_of = MadeOfAds(self._found_reads)
        self._names: dict[tuple[str, ...], str] = {}
        self._seen_s: dict[str, float] = {}
        self.version = 0

    def ask(
        self, query: Callable[[list[str]], Sequence[Any]], attributes: Iterable[str]
    ) -> Sequence[Any]:
        """The ads of jobs, with these attributes and all that their kinds depend on."""
        beside = list(attributes)
        for _ in range(_ROUNDS):
            self._asked |= self.read_by_slots
            asked = len(self._asked)
            ads = query([*beside, *sorted(self._asked)])
            for ad in ads:
                self._reads_of.of(ad)
            if len(self._asked) == asked:
                break
        return ads

    def name_of(self, ad: Any) -> str:
        """The name of a job's kind, by its ad from `ask`; empty if it has none."""
        reads = self._reads_of.of(ad)
        if not reads:
            return ""
        same = values(ad, sorted(reads | self.read_by_slots))
        name = self._names.get(same)
        if name is None:
            if len(self._names) >= _MOST_NAMES:
                self._names.clear()
            name = self._names[same] = self._found(ad)
        return name

    def are_read_by_slots(self, names: set[str]) -> None:
        """These attributes of jobs are what slots read."""
        if names != self.read_by_slots:
            self.read_by_slots = names
            self.version += 1

    def saw(self, name: str, now_s: float) -> None:
        """There is a job of this kind at this time."""
        self._seen_s[name] = now_s

    def forget(self, before_s: float) -> list[str]:
        """Forget the kinds of which no job was seen since; their names."""
        gone = [name for name, at_s in self._seen_s.items() if at_s < before_s]
        for name in gone:
            del self._seen_s[name], self.kinds[name]
        self._names = {same: name for same, name in self._names.items() if name in self.kinds}
        reads = (demand.reads for kind in self.kinds.values() for demand in kind.demands)
        self.read_of_slots = set().union(*reads)
        is_long = len(self._asked) > MOST_ASKED / 2
        if gone or is_long:
            self.version += 1
        if is_long:  # what is still needed is learned again
            self._asked = {REQUIREMENTS.lower()}
            self._reads.clear()
            self._reads_of.clear()
            self._names.clear()
        return gone

    def _found(self, ad: Any) -> str:
        try:
            asks = tuple(dict.fromkeys(demands(ad, REQUIREMENTS)))
            kind = JobKind(evaluated(ad, self.read_by_slots), tuple(map(clause, asks)))
        except ClassAdException:
            return ""
        said = "\0".join([*asks, "", *values(kind.ad, sorted(self.read_by_slots))])
        name = f"requirements-{hashlib.sha256(said.encode(errors='replace')).hexdigest()[:10]}"
        if name in self.kinds:
            return name
        reads = self.read_of_slots.union(*(demand.reads for demand in kind.demands))
        if len(self.kinds) >= _MOST_KINDS or len(reads) > MOST_ASKED:
            return ""
        self.kinds[name], self.read_of_slots = kind, reads
        return name

    def _found_reads(self, ad: Any) -> set[str]:
        """What a job's requirements depend on, which is asked for from now on."""
        if REQUIREMENTS not in ad:
            return set()
        # each attribute costs a call, and no other can be among those that it depends on
        shape = shape_of(ad, [name for name in ad if name.lower() in self._asked])
        known = self._reads.get(shape)
        if known is not None:
            return known
        if sum(map(len, shape)) > _LONGEST:
            return set()
        reads = referred_to(ad, REQUIREMENTS)
        asked = self._asked | reads
        if len(reads) > _MOST_READ or len(asked) > MOST_ASKED:
            reads = set()
        else:
            self._asked = asked
        if len(self._reads) >= _MOST_SHAPES:
            self._reads.clear()
        self._reads[shape] = reads
        return reads


def shape_of(ad: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Those attributes of an ad that are expressions: what it depends on is a matter of these."""
    return tuple(str(value) for name in names if isinstance(value := ad[name], ExprTree))


# -- slot kinds ------------------------------------------------------------------------------------
# The slots of a pool as jobs' requirements see them, without jobs and owners.

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
        """Return how much of an attribute slots have, each amount with its slots."""
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
