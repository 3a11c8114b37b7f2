"""Events on their way into the engine, past what it fails on.

Whoever feeds the daemon's engine does it through a `GuardedFeed`: an event on which Outrider itself
fails is set aside, the state is made consistent again, and the events behind it go on. The guard
stands around many events at a time, so that none pays for it.
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf

from outrider.engine import Engine, EventMerger
from outrider.model.events import Event


class GuardedFeed:
    """What may enter the engine once every source has been seen up to a watermark.

    Args:
        merger, engine: joined to each other.
        mark_s: the watermark; minus infinity: nothing may.
        moves_clock: the clock reaches the watermark, too, and not only the last event before it.
    """

    def __init__(
        self, merger: EventMerger, engine: Engine, mark_s: float = -inf, moves_clock: bool = True
    ) -> None:
        self._merger = merger
        self._engine = engine
        self._mark_s = mark_s
        self._moves_clock = moves_clock
        self._events = self._entering()

    def _entering(self, first: Iterable[Event] = ()) -> Iterator[Event]:
        yield from first
        yield from self._merger.advance(self._mark_s)
        if self._moves_clock and self._mark_s > -inf:
            self._moves_clock = False  # where this fails it is not tried again: the feed must end
            self._merger.reach(self._mark_s)
            self._engine.reach(self._mark_s)

    def step(self, most: int) -> bool:
        """Feed at most so many events; False when nothing is left."""
        try:
            return self._engine.feed(islice(self._events, most)) == most
        except Exception as error:  # noqa: BLE001 - no event ends the daemon; it is recorded
            self._events = self._entering(self._set_aside(error))
            return True

    def _set_aside(self, error: Exception) -> list[Event]:
        """Be consistent without the event at hand; returns what it meant besides for machines."""
        site = self._engine.site
        left = self._merger.give_up(error)
        known = self._merger.normaliser.realign(
            site.jobs,
            [spec is not None for spec in site.specs],
            list(map(bool, site.owner)),
        )
        self._engine.take_out_all_but(known)
        return left
