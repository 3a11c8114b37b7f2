"""Holds by which Outrider keeps jobs in the queue: for its policies these wait."""

from collections.abc import Iterable
from typing import Final

import msgspec

from outrider.api import NamedEvent, events
from outrider_adapters.htcondor.lease_attributes import OWN_HOLD

_ENDS: Final = frozenset({events.STARTED, events.COMPLETED, events.REMOVED})


class OwnHolds:
    """Jobs that are held by Outrider's own lease, and by nobody else."""

    def __init__(self) -> None:
        self._held: set[str] = set()

    def without(self, told: Iterable[NamedEvent]) -> list[NamedEvent]:
        """The events without these holds, and without the releases that end them."""
        left = []
        for event in told:
            _, kind, job, extra = event
            if kind == events.HELD and extra == OWN_HOLD:
                self._held.add(job)
            elif kind == events.RELEASED and job in self._held:
                self._held.discard(job)
            else:
                left.append(event)
                if kind in _ENDS:
                    self._held.discard(job)
        return left

    def save(self) -> list[str]:
        """The jobs, as JSON types."""
        return sorted(self._held)

    def restore(self, saved: object) -> None:
        """Go on from what `save` gave. Raises `msgspec.ValidationError` if it does not fit."""
        self._held = msgspec.convert(saved, set[str])
