"""Reports of delays of the event loop, and of none."""

import asyncio
import time
from types import SimpleNamespace
from typing import Any

from outrider.service.process import supervisor
from outrider.service.process.supervisor import watch_loop


async def test_the_longest_delay_is_told_and_stays_until_it_is_scraped(monkeypatch: Any) -> None:
    monkeypatch.setattr(supervisor, "_LAG_EVERY_S", 0.05)
    view: Any = SimpleNamespace(loop_lag_s=0.0)
    watching = asyncio.create_task(watch_loop(view))
    try:
        await asyncio.sleep(0.2)
        quiet_s, began_s = view.loop_lag_s, time.monotonic()
        assert 0.0 <= quiet_s < 30.0, "nothing held it up but other processes"
        time.sleep(0.6)  # noqa: ASYNC251 - that is what holds it up
        held_s = time.monotonic() - began_s
        await asyncio.sleep(0.2)
        assert 0.5 < view.loop_lag_s < held_s + 30.0
        longest_s = view.loop_lag_s
        await asyncio.sleep(0.2)
        assert view.loop_lag_s >= longest_s
    finally:
        watching.cancel()
