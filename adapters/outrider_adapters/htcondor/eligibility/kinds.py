"""Kinds of jobs and kinds of slots: groups with the same requirements."""

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
from outrider_adapters.htcondor.machines import AdCache
from outrider_adapters.htcondor.pool_calls import ClassAd, ClassAdException, ExprTree, number

# -- job kinds -------------------------------------------------------------------------------------
# Kinds of jobs: jobs with the same requirements, and the same values that slots read.

_ROUNDS: Final = 5
"""Maximum number of queries until all attributes that others depend on are known."""
_MAX_KINDS: Final = 900
"""Maximum number of kinds; jobs of further kinds have no class and may use any machine."""
_MAX_SHAPES: Final = 5_000
_MAX_NAMES: Final = 30_000
"""Cached combinations of expressions, and of values; others are read again."""
_MAX_EXPRESSION_CHARS: Final = 20_000
_MAX_READ: Final = 200
MAX_QUERIED: Final = 1_000
"""Limits: characters of a job's expressions, attributes they read, attributes queried in all.

Users write these expressions. A job beyond a limit has no class.
"""


class JobKind(NamedTuple):
    """Jobs with the same requirements.

    Attributes:
        ad: the attributes that slots read of them.
        demands: the clauses that slots have to meet.
    """

    ad: Any
    demands: tuple[Clause, ...]


class JobKinds:
    """Classifier of jobs into kinds, which also queries the attributes that it needs.

    Attributes:
        kinds: kinds by name; the same requirements always have the same name.
        read_of_slots: attributes that their demands read, in small letters.
        read_by_slots: attributes of jobs that slots read, in small letters.
        version: number that changes whenever the same ad may have another name.
    """

    def __init__(self) -> None:
        self.kinds: dict[str, JobKind] = {}
        self.read_of_slots: set[str] = set()
        self.read_by_slots: set[str] = set()
        self._asked = {REQUIREMENTS.lower()}
        self._reads: dict[tuple[str, ...], set[str]] = {}
        self._reads_of = AdCache(self._found_reads)
        self._names: dict[tuple[str, ...], str] = {}
        self._seen_s: dict[str, float] = {}
        self.version = 0

    def ask(
        self, query: Callable[[list[str]], Sequence[Any]], attributes: Iterable[str]
    ) -> Sequence[Any]:
        """Return the ads of jobs, with these attributes and all that their kinds depend on."""
        extra = list(attributes)
        for _ in range(_ROUNDS):
            self._asked |= self.read_by_slots
            asked = len(self._asked)
            ads = query([*extra, *sorted(self._asked)])
            for ad in ads:
                self._reads_of.of(ad)
            if len(self._asked) == asked:
                break
        return ads

    def name_of(self, ad: Any) -> str:
        """Return the name of a job's kind, by its ad from `ask`; empty if it has none."""
        reads = self._reads_of.of(ad)
        if not reads:
            return ""
        same = values(ad, sorted(reads | self.read_by_slots))
        name = self._names.get(same)
        if name is None:
            if len(self._names) >= _MAX_NAMES:
                self._names.clear()
            name = self._names[same] = self._found(ad)
        return name

    def are_read_by_slots(self, names: set[str]) -> None:
        """Set the attributes of jobs that slots read."""
        if names != self.read_by_slots:
            self.read_by_slots = names
            self.version += 1

    def mark_seen(self, name: str, now_s: float) -> None:
        """Record that a job of this kind exists at this time."""
        self._seen_s[name] = now_s

    def forget(self, before_s: float) -> list[str]:
        """Forget the kinds without a job since then, and return their names."""
        gone = [name for name, at_s in self._seen_s.items() if at_s < before_s]
        for name in gone:
            del self._seen_s[name], self.kinds[name]
        self._names = {same: name for same, name in self._names.items() if name in self.kinds}
        reads = (demand.reads for kind in self.kinds.values() for demand in kind.demands)
        self.read_of_slots = set().union(*reads)
        is_long = len(self._asked) > MAX_QUERIED / 2
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
        text = "\0".join([*asks, "", *values(kind.ad, sorted(self.read_by_slots))])
        name = f"requirements-{hashlib.sha256(text.encode(errors='replace')).hexdigest()[:10]}"
        if name in self.kinds:
            return name
        reads = self.read_of_slots.union(*(demand.reads for demand in kind.demands))
        if len(self.kinds) >= _MAX_KINDS or len(reads) > MAX_QUERIED:
            return ""
        self.kinds[name], self.read_of_slots = kind, reads
        return name

    def _found_reads(self, ad: Any) -> set[str]:
        """Return the attributes that a job's requirements depend on, and query them from now on."""
        if REQUIREMENTS not in ad:
            return set()
        # each attribute costs a call, and no other can be among those that it depends on
        shape = shape_of(ad, [name for name in ad if name.lower() in self._asked])
        known = self._reads.get(shape)
        if known is not None:
            return known
        if sum(map(len, shape)) > _MAX_EXPRESSION_CHARS:
            return set()
        reads = referred_to(ad, REQUIREMENTS)
        asked = self._asked | reads
        if len(reads) > _MAX_READ or len(asked) > MAX_QUERIED:
            reads = set()
        else:
            self._asked = asked
        if len(self._reads) >= _MAX_SHAPES:
            self._reads.clear()
        self._reads[shape] = reads
        return reads


def shape_of(ad: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Return the attributes that are expressions: they determine the dependencies of an ad."""
    return tuple(str(value) for name in names if isinstance(value := ad[name], ExprTree))


# -- slot kinds ------------------------------------------------------------------------------------
# Slots of a pool as jobs' requirements see them, without jobs and owners.

WHOLE: Final = "TotalSlot"
"""Prefix of a resource's name for the total in a partitionable slot."""
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
"""Values of an idle slot: that a slot is busy is temporary, and is the machine's state."""
REQUIREMENTS: Final = "Requirements"
_MAX_CACHED: Final = 5_000
"""Cached clauses of jobs, and combinations of values that slots read of jobs."""


class SlotKinds:
    """Slots grouped by equal values; sets of slots are integers, a bit each.

    Args:
        ads: ads of the slots that are not dynamic, from `as_idle`.

    Attributes:
        reads: attributes of jobs that the slots' own requirements read, in small letters.
    """

    def __init__(self, ads: Iterable[Any]) -> None:
        self._ads = list(ads)
        self._passing: dict[str, int] = {}
        self._groups_by_reads: dict[tuple[str, ...], list[tuple[Any, int]]] = {}
        self._conditions: dict[tuple[str, ...], dict[str, tuple[Clause, int]]] = {}
        """Conditions with their slots, by the job attributes that they read, then by text."""
        self._refusing: dict[tuple[tuple[str, ...], tuple[str, ...]], int] = {}
        self._find_conditions()
        self.reads = {name for reads in self._conditions for name in reads}

    @property
    def everyone(self) -> int:
        """The set of all slots."""
        return (1 << len(self._ads)) - 1

    def passing(self, demand: Clause) -> int:
        """Return the slots for which a clause of a job's requirements is true."""
        known = self._passing.get(demand.text)
        if known is None:
            if len(self._passing) > _MAX_CACHED:
                self._passing.clear()
            known = 0
            for ad, slots in self._grouped(demand.reads):
                if demand.holds(ad):
                    known |= slots
            self._passing[demand.text] = known
        return known

    def accepting(self, job: Any) -> int:
        """Return the slots whose own requirements are true of a job's ad."""
        refusing = 0
        for reads, conditions in self._conditions.items():
            key = reads, values(job, reads)
            known = self._refusing.get(key)
            if known is None:
                known = 0
                for condition, slots in conditions.values():
                    if not condition.holds(job):
                        known |= slots
                if len(self._refusing) > _MAX_CACHED:
                    self._refusing.clear()
                self._refusing[key] = known
            refusing |= known
        return self.everyone & ~refusing

    def refusals(self, job: Any, slots: int) -> list[str]:
        """Return the slots' own conditions that refuse a job, that of the most slots first.

        Args:
            job: ad of the job, as for `accepting`.
            slots: the slots to look at.
        """
        found: dict[str, int] = {}
        for conditions in self._conditions.values():
            for text, (condition, having) in conditions.items():
                if having & slots and not condition.holds(job):
                    found[text] = found.get(text, 0) | having & slots
        return sorted(found, key=lambda text: -found[text].bit_count())

    def offering(self, attribute: str) -> list[tuple[float, int]]:
        """Return the amounts of an attribute that slots have, each with its slots."""
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
                same_reads = self._conditions.setdefault(one.reads, {})
                _, slots = same_reads.get(one.text, (one, 0))
                same_reads[one.text] = one, slots | 1 << at

    def _grouped(self, reads: tuple[str, ...]) -> Sequence[tuple[Any, int]]:
        """Return an ad and the slots for every combination of values of some attributes."""
        groups = self._groups_by_reads.get(reads)
        if groups is None:
            found: dict[tuple[str, ...], tuple[Any, int]] = {}
            for at, ad in enumerate(self._ads):
                same = values(ad, reads)
                first, slots = found.get(same, (ad, 0))
                found[same] = first, slots | 1 << at
            groups = self._groups_by_reads[reads] = list(found.values())
        return groups


def _conditions(ad: Any) -> list[Clause]:
    """Return the conditions of a slot on jobs; none if they are nested too deeply to be read."""
    try:
        return [clause(text) for text in demands(ad, REQUIREMENTS) if text != NEVER]
    except ClassAdException:
        return []


def values(ad: Any, names: Iterable[str]) -> tuple[str, ...]:
    """Return attributes of an ad in HTCondor's form; empty if it lacks them."""
    return tuple(str(ad.lookup(name)) if name in ad else "" for name in names)


def as_idle(ad: Any) -> Any:
    """Return a slot's ad as it would be without jobs and owner: partitionable slots are whole."""
    idle = ClassAd()
    is_partitionable = ad.get("PartitionableSlot") is True
    for name, value in ad.items():
        total_name = f"{WHOLE}{name}"
        whole = ad.get(total_name) if is_partitionable and total_name in ad else value
        idle[name] = _AS_IDLE.get(name.lower(), whole)
    if REQUIREMENTS not in idle:
        idle[REQUIREMENTS] = ad.lookup("Start") if "Start" in ad else ExprTree("true")
    return idle
