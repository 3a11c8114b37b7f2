"""What runs beside the sources for as long as the daemon lives: snapshots, retention, watching."""

import asyncio
import math
import time
from typing import Final

from outrider.engine.ingest.set_aside import LAST_S
from outrider.ledger import Entry
from outrider.service.commands.watched_time import WATCHED_KEY, WatchedTime
from outrider.service.config.declarations import policies_of
from outrider.service.daemon_state import DaemonState
from outrider.service.daemon_view import DaemonView
from outrider.service.sdnotify import ServiceManager

_LAG_EVERY_S = 0.5
_PRUNE_EVERY_S = 6 * 3600.0
_DAY_S = 86_400.0
_MANY_FED = 5_000
_WATCHED_EVERY_S: Final = 10.0
_WATCHED_LOOKS: Final = 6
_FIRST_SNAPSHOT_S: Final = 10.0
"""How soon a snapshot is tried again that failed."""


async def keep_ledger(state: DaemonState) -> None:
    """Write snapshots and remove what is older than the retention, for ever."""
    pruned_at = -math.inf  # a daemon that is often started again must prune, too
    # should the daemon be killed soon, as many inputs need not be fed again
    pause_s = 0.0 if state.recording.fed > _MANY_FED else _FIRST_SNAPSHOT_S
    while True:
        await asyncio.sleep(min(pause_s, state.loaded.config.snapshot_every_s))
        async with state.lock:
            went_well = await state.snapshot()
        pause_s = math.inf if went_well else _FIRST_SNAPSHOT_S
        if time.monotonic() - pruned_at > _PRUNE_EVERY_S:
            pruned_at = time.monotonic()
            await prune(state)
        await state.recording.retention.keep_within(state.loaded.config.journal_max_bytes)


async def prune(state: DaemonState) -> None:
    """Remove what is older than the retention, as long as it is known what time it is.

    After a leap of the clock that is counted from before it for a week: should the clock have been
    put ahead wrongly, nothing is lost by that.
    """
    clock, now_s = state.site_clock, state.core.site.now
    leaps = state.recording.snapshots.leaps()
    latest_s = LAST_S if clock is None else clock.limits(now_s).latest_s
    if clock is not None and leaps:
        now_s = min(now_s, leaps[0].before_s)
    config = state.loaded.config
    await state.recording.retention.prune(
        now_s - config.retention_days * _DAY_S,
        latest_s,
        now_s - config.runs_retention_days * _DAY_S,
    )


async def keep_watched_time(state: DaemonState, watched: WatchedTime) -> None:
    """Count, for ever, how long the policies have decided here, and record that every minute."""
    looks = 0
    while True:
        await asyncio.sleep(_WATCHED_EVERY_S)
        looks += 1
        note_watched_time(state, watched)
        if looks % _WATCHED_LOOKS == 0:
            await state.recording.submit(Entry(meta={WATCHED_KEY: watched.plain()}))


def note_watched_time(state: DaemonState, watched: WatchedTime) -> None:
    """Count the time since this was last called."""
    config = state.loaded.config
    decides = config.mode != "observe" and state.history_read.is_set()
    watched.look(config.mode, policies_of(config), decides and state.core.is_fresh)


async def watch_loop(view: DaemonView) -> None:
    """Measure, for ever, how much later than asked the event loop wakes this task."""
    loop = asyncio.get_running_loop()
    while True:
        due = loop.time() + _LAG_EVERY_S
        await asyncio.sleep(_LAG_EVERY_S)
        view.loop_lag_s = max(view.loop_lag_s, loop.time() - due)


async def feed_watchdog(service: ServiceManager, every_s: float) -> None:
    """Tell the service manager, for ever, that the event loop is alive."""
    while True:
        service.alive()
        await asyncio.sleep(every_s)
