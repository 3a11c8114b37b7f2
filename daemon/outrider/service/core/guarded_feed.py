"""Events on their way into the engine, past those on which Outrider itself fails.

The daemon's engine is always fed through a `GuardedFeed`: an event on which it fails is set aside,
the state is repaired, and the next events go on. One `try` stands around many events, so that it
costs nothing for each.

Where the repair fails as well, the feed still goes on, but the state is in doubt: the event is
noted in `unrepaired`, and the daemon makes its state anew (`outrider.service.daemon.pump`).
"""

from collections.abc import Iterable, Iterator
from itertools import islice
from math import inf

import structlog

from outrider.engine import Engine, EventMerger
from outrider.engine.ingest.event_merger import EventIdentity
from outrider.model.events import Event

log = structlog.get_logger()


class GuardedFeed:
    """What may enter the engine once every source has been seen up to a watermark.

    Args:
        merger, engine: joined to each other.
        unrepaired: gets the key of each event after which the repair failed; None: of a tick.
        watermark_s: minus infinity: nothing may enter.
        moves_clock: the clock reaches the watermark, too, and not only the last event before it.
    """

    def __init__(
        self, merger: EventMerger, engine: Engine, unrepaired: list[EventIdentity | None],
        watermark_s: float = -inf, moves_clock: bool = True,
    ) -> None:  # fmt: skip
        self._merger = merger
        self._engine = engine
        self._unrepaired = unrepaired
        self._watermark_s = watermark_s
        self._moves_clock = moves_clock
        self._events = self._entering()

    def _entering(self, first: Iterable[Event] = ()) -> Iterator[Event]:
        yield from first
        yield from self._merger.advance(self._watermark_s)
        if self._moves_clock and self._watermark_s > -inf:
            self._moves_clock = False  # where this fails it is not tried again: the feed must end
            self._merger.reach(self._watermark_s)
            self._engine.reach(self._watermark_s)

    def step(self, most: int) -> bool:
        """Feed at most so many events; False when nothing is left."""
        before = self._progress()
        try:
            return self._engine.feed(islice(self._events, most)) == most
        except Exception as error:  # noqa: BLE001 - no event ends the daemon; it is recorded
            self._events = self._entering(self._set_aside(error))
            return self._progress() != before  # or it would fail here for ever

    def _progress(self) -> tuple[int, int, bool]:
        return self._engine.events, self._merger.waiting_n(), self._moves_clock

    def _set_aside(self, error: Exception) -> list[Event]:
        """Leave out the event that failed; returns what it meant besides for machines."""
        at_hand, left = self._merger.give_up(error)
        try:
            self._repair(asks_again=at_hand is not None)
        except Exception as second:
            self._unrepaired.append(at_hand)
            log.exception("fail_repair", after=f"{type(error).__name__}: {error}")
            self._merger.amend_last(f"; the repair failed: {type(second).__name__}: {second}")
        return left

    def _repair(self, asks_again: bool) -> None:
        """Make what is derived from jobs and machines consistent again."""
        site = self._engine.site
        known = self._merger.normaliser.realign(
            site.jobs,
            [spec is not None for spec in site.specs],
            list(map(bool, site.owner)),
        )
        self._engine.take_out_all_but(known, asks_again)
