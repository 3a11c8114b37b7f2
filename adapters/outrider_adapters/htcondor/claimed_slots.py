"""Where jobs run, by the word of slots: a queue alone is no proof.

HTCondor lets users set ``JobStatus`` and ``RemoteHost`` of their own jobs. A start that is told
with a slot says that what ran there before is over, which may be somebody else's job; one on a
machine that nobody knows would add that to the site.
"""

from collections.abc import Callable
from typing import Any, Final

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.bindings import quote
from outrider_adapters.htcondor.pool_calls import PoolCalls
from outrider_adapters.polling import Asking
from outrider_adapters.readers.htcondor.hosts import UNKNOWN_HOST

_ATTRIBUTES: Final = ("Name", "GlobalJobId")
_MOST_ASKED: Final = 1_000
"""Slots in one question; starts on others are told without them."""


class ClaimedSlots:
    """Holds starts that a queue tells against the slots.

    Args:
        calls: the pool.
        asking: asks, and notes who does not answer.
        knows: whether a machine is in the pool.
    """

    def __init__(self, calls: PoolCalls, asking: Asking, knows: Callable[[str], bool]) -> None:
        self._calls = calls
        self._asking = asking
        self._knows = knows

    def confirmed(self, told: list[NamedEvent], now_s: float) -> list[NamedEvent]:
        """The events; starts have their slot only where the slot says that it runs this job.

        A machine that is not in the pool goes by `UNKNOWN_HOST`.

        Args:
            told: by a queue.
            now_s: when.
        """
        names = {_slot(event) for event in told} - {""}
        runs = self._runs(sorted(names)[:_MOST_ASKED], now_s) if names else {}
        return [self._placed(event, runs) if _slot(event) else event for event in told]

    def _placed(self, event: NamedEvent, runs: dict[str, str] | None) -> NamedEvent:
        time_s, kind, job, (machine, cpus, _) = event
        if runs is None:  # nobody says otherwise
            return time_s, kind, job, (machine, cpus)
        said = runs.get(_slot(event))
        if said is not None and said.startswith(f"{job}#"):
            return event
        is_known = said is not None or self._knows(machine)
        return time_s, kind, job, (machine if is_known else UNKNOWN_HOST, cpus)

    def _runs(self, names: list[str], now_s: float) -> dict[str, str] | None:
        """The ``GlobalJobId`` of what runs on each of these slots; None: no answer."""
        constraint = f"member(Name, {{{','.join(map(quote, names))}}})"
        ads = self._asking.ask("collector", now_s, lambda: self._query(constraint))
        if ads is None:
            return None
        return {str(ad["Name"]): str(ad.get("GlobalJobId") or "") for ad in ads}

    def _query(self, constraint: str) -> Any:
        calls = self._calls
        return calls.collector.query(calls.slot_ads, constraint, list(_ATTRIBUTES))


def _slot(event: NamedEvent) -> str:
    """The name of the slot on which a run begins; empty where it has none."""
    _, kind, _, extra = event
    return f"{extra[2]}@{extra[0]}" if kind == events.STARTED and len(extra) > 2 else ""
