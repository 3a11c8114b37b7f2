"""Match a job's conditions with the slots of a pool, and find the conditions that fail."""

import re
from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, Final, NamedTuple

from outrider.api import Clause
from outrider_adapters.htcondor.eligibility.kinds import JobKind, SlotKinds
from outrider_adapters.htcondor.pool_calls import ClassAd

START: Final = "START of the machines"
"""Clause for the conditions of the machines themselves on jobs."""

_AT_LEAST: Final = re.compile(
    r"(?:TARGET\s*\.\s*)?(Memory|Disk|Cpus|GPUs)\s*>=\s*\d+(?:\.\d+)?", re.IGNORECASE
)
"""Pattern of ``TARGET.Memory >= RequestMemory`` after evaluation."""

_MAX_TRIED: Final = 100
_MAX_REFUSALS: Final = 3


class AtMost(NamedTuple):
    """A smaller request with which machines would match.

    Attributes:
        attribute: attribute of slots: ``Memory``, ``Disk``, ``Cpus`` or ``GPUs``, in small letters.
        amount: largest request, in the attribute's unit.
        machines: number that would match then; 0: this request alone does not help.
    """

    attribute: str
    amount: float
    machines: int


class Matching(NamedTuple):
    """Match of a kind of job with the machines of a pool, without their jobs and owners.

    Attributes:
        pool: number of machines in the pool.
        machines: the machines that match.
        clauses: the conditions, the job's own first, then `START`.
        at_most: requests that would help if they were smaller, the most machines first.
        fits: the job's own conditions as a constraint on slots in their current state.
        refusals: the conditions of START that refuse it on machines that meet its own conditions,
            or on all if none does, that of the most slots first.
    """

    pool: int
    machines: frozenset[str]
    clauses: tuple[Clause, ...]
    at_most: tuple[AtMost, ...]
    fits: str
    refusals: tuple[str, ...] = ()


def matching(kind: JobKind, slots: SlotKinds, machines: Sequence[str]) -> Matching:
    """Match a kind of job with slots.

    Args:
        kind: the kind of job.
        slots: the slots of the pool.
        machines: the machine of each slot.
    """

    def on(mask: int) -> frozenset[str]:
        return frozenset(machine for at, machine in enumerate(machines) if mask >> at & 1)

    texts = [*(demand.text for demand in kind.demands), START]
    met = [*(slots.passing(demand) for demand in kind.demands), slots.accepting(kind.ad)]
    matched = reduce(and_, met)
    clauses, at_most = [], []
    for at, (text, mask) in enumerate(zip(texts, met, strict=True)):
        rest = reduce(and_, met[:at] + met[at + 1 :], slots.everyone)
        if text != START or mask != slots.everyone:
            clauses.append(Clause(text, len(on(mask)), len(on(rest))))
        asked = _AT_LEAST.fullmatch(text)
        if asked is None:
            continue
        attribute = asked[1].lower()
        others = reduce(and_, met[:at] + met[at + 1 : -1], slots.everyone)
        amount, helped = _smaller(attribute, kind.ad, slots, others) if others & ~mask else (0.0, 0)
        if helped & ~matched:
            at_most.append(AtMost(attribute, amount, len(on(helped))))
        elif not mask:
            amount, _ = max(slots.offering(attribute), default=(0.0, 0))
            at_most.append(AtMost(attribute, amount, 0))
    at_most.sort(key=lambda one: -one.machines)
    pool = len(set(machines))
    fits = " && ".join(f"({demand.tree})" for demand in kind.demands) or "true"
    own = reduce(and_, met[:-1], slots.everyone)
    refused = (own or slots.everyone) & ~met[-1]
    refusals = slots.refusals(kind.ad, refused)[:_MAX_REFUSALS] if refused else ()
    return Matching(pool, on(matched), tuple(clauses), tuple(at_most), fits, tuple(refusals))


def _smaller(attribute: str, job: Any, slots: SlotKinds, others: int) -> tuple[float, int]:
    """Return the largest request for which any slot matches, and the slots that then match.

    Conditions of slots that read the job's request are evaluated with this amount.
    """
    offers = [(amount, mask & others) for amount, mask in slots.offering(attribute)]
    offers = sorted((offer for offer in offers if offer[1]), reverse=True)[:_MAX_TRIED]
    request = f"request{attribute}"
    for at, (amount, _) in enumerate(offers):
        if amount <= 0.0:
            break
        asking = ClassAd(str(job))
        if request in {name.lower() for name in asking}:
            asking[request] = amount
        enough = reduce(or_, (mask for _, mask in offers[: at + 1]))
        matched = enough & slots.accepting(asking)
        if matched:
            return amount, matched
    return 0.0, 0
