"""What runs beside the sources for as long as the daemon lives: snapshots, retention, watching."""

import asyncio
import math
import time
from typing import Final

from outrider.service.daemon_state import DaemonState
from outrider.service.daemon_view import DaemonView
from outrider.service.sdnotify import ServiceManager

_LAG_EVERY_S = 0.5
_PRUNE_EVERY_S = 6 * 3600.0
_DAY_S = 86_400.0
_MANY_FED = 5_000
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
        config, now_s = state.loaded.config, state.core.site.now
        if time.monotonic() - pruned_at > _PRUNE_EVERY_S:
            pruned_at = time.monotonic()
            await state.recording.prune(
                now_s - config.retention_days * _DAY_S,
                now_s - config.runs_retention_days * _DAY_S,
            )
        await state.recording.keep_within(config.journal_max_bytes)


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
