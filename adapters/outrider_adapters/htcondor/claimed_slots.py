"""Which job a slot runs, by its own word: a queue alone is no proof.

HTCondor lets users set ``JobStatus`` and ``RemoteHost`` of their own jobs. A start that is told
with a slot says that what ran there before is over, which may be somebody else's job.
"""

from typing import Any, Final

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.bindings import quote
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.polling import Asking

_ATTRIBUTES: Final = ("Name", "GlobalJobId")
_MOST_ASKED: Final = 1_000
"""Slots in one question; starts on others are told without them."""


class ClaimedSlots:
    """Holds starts that a queue tells against the slots.

    Args:
        calls: the pool.
        asking: asks, and notes who does not answer.
    """

    def __init__(self, calls: PoolCalls, asking: Asking) -> None:
        self._calls = calls
        self._asking = asking

    def confirmed(self, told: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        """The events; starts have their slot only where the slot says that it runs this job.

        Args:
            told: by a queue.
            now_s: when.
        """
        names = {_slot(event) for event in told} - {""}
        runs = self._runs(sorted(names)[:_MOST_ASKED], now_s) if names else {}
        return [
            (*event[:3], event[3][:2])
            if (slot := _slot(event)) and not runs.get(slot, "").startswith(f"{event[2]}#")
            else event
            for event in told
        ]

    def _runs(self, names: list[str], now_s: float) -> dict[str, str]:
        """The ``GlobalJobId`` of what runs on each of these slots."""
        constraint = f"member(Name, {{{','.join(map(quote, names))}}})"
        ads = self._asking.ask("collector", now_s, lambda: self._query(constraint))
        return {str(ad["Name"]): str(ad.get("GlobalJobId") or "") for ad in ads or ()}

    def _query(self, constraint: str) -> Any:
        calls = self._calls
        return calls.collector.query(calls.slot_ads, constraint, list(_ATTRIBUTES))


def _slot(event: NamedEvent) -> str:
    """The name of the slot on which a run begins; empty where it has none."""
    _, kind, _, extra = event
    return f"{extra[2]}@{extra[0]}" if kind == events.STARTED and len(extra) > 2 else ""
