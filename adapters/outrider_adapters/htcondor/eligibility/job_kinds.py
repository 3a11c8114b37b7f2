"""Kinds of jobs: those that ask the same of slots, and of which slots read the same."""

import hashlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

from outrider_adapters.htcondor.bindings import ClassAdException, ExprTree
from outrider_adapters.htcondor.eligibility.clauses import (
    Clause,
    clause,
    demands,
    evaluated,
    referred_to,
)
from outrider_adapters.htcondor.eligibility.slot_kinds import REQUIREMENTS, values
from outrider_adapters.htcondor.made_of_ads import MadeOfAds

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
