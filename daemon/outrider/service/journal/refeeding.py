"""Feeding a core what stands in the journal, so that it ends in the same state."""

from collections.abc import Iterable
from typing import Final

from outrider.engine.ingest.set_aside import SetAside, TimeLimits
from outrider.model.events import TICK, NamedEvent
from outrider.service.core.core import Core
from outrider.service.core.guarded_feed import GuardedFeed

_AT_ONCE: Final = 10_000


def refeed(
    core: Core, rows: Iterable[tuple[int, str, NamedEvent]], limits: TimeLimits | None = None
) -> int:
    """Feed inputs of the journal again and record no decisions; returns how many inputs.

    Events of other times than `limits` were believed when they came: they are set aside now, and
    that is still to be recorded.
    """
    merger = core.merger
    core.decision_log.replaying = True
    n = 0
    early: list[SetAside] = []
    if limits is not None:
        merger.recheck(limits)
        early += merger.take_set_aside()
    for _, label, event in rows:
        n += 1
        if event[1] == TICK:
            feed = GuardedFeed(merger, core.engine, core.unrepaired, event[0])
            while feed.step(_AT_ONCE):
                pass
        elif limits is None or merger.admit(label, (event,), limits):
            core.arrive(label, (event,))
        else:
            early += merger.take_set_aside()[-1:]
    merger.newly_set_aside[:] = early  # the others were recorded when they came first
    core.decision_log.replaying = False
    return n
