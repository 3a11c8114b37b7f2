"""Evictions by owners, and whether their log-ins are on record."""

from collections.abc import Iterable, Iterator
from math import inf
from typing import Final

from outrider.model import events as ev
from outrider.model.events import Event

NEAR_S: Final = 300.0
"""A log-in is told this much before or after the eviction that it causes, at most."""


class OwnerEvictions:
    """Counts evictions by owners. A record that lacks sessions has evictions without a log-in.

    Attributes:
        evictions: by an owner.
        unexplained: of them, those where no owner was there, nor came or went within `NEAR_S`.
    """

    def __init__(self) -> None:
        self.evictions = 0
        self._machine: dict[int, int] = {}
        self._has_owner: set[int] = set()
        self._changed_s: dict[int, float] = {}
        self._open: dict[int, list[float]] = {}
        self._explained = 0

    @property
    def unexplained(self) -> int:
        """Evictions by an owner of whom nothing is on record."""
        return self.evictions - self._explained

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Pass events on, and count."""
        for event in events:
            time_s, kind, subject, extra = event
            if kind == ev.STARTED:
                self._machine[subject] = extra[0]
            elif kind == ev.EVICTED and extra == "owner":
                self._evicted(time_s, self._machine.get(subject, -1))
            elif kind == ev.OWNER_CAME:
                self._has_owner.add(subject)
                self._changed(time_s, subject)
            elif kind == ev.OWNER_WENT:
                self._has_owner.discard(subject)
                self._changed(time_s, subject)
            yield event

    def _evicted(self, time_s: float, machine: int) -> None:
        self.evictions += 1
        near = time_s - self._changed_s.get(machine, -inf) <= NEAR_S
        if machine in self._has_owner or near:
            self._explained += 1
        else:
            self._open.setdefault(machine, []).append(time_s)

    def _changed(self, time_s: float, machine: int) -> None:
        self._changed_s[machine] = time_s
        waiting = self._open.pop(machine, ())
        self._explained += sum(time_s - evicted_s <= NEAR_S for evicted_s in waiting)
