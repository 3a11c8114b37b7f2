"""PBS begins a new file each day: a pattern follows them all, each from its beginning, once."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from outrider.api import Batch, NamedEvent, build, events
from outrider_adapters.logtail import LogtailAdapter, LogtailSettings
from tests.adapters.readers.test_pbs_records import ended, line, pairs

WITHIN_S = 20.0


def settings(folder: Path, **more: Any) -> LogtailSettings:
    given = {"paths": [f"{folder}/2???????"], "format": "pbs", "poll_s": 0.05, "settle_s": 0.2}
    return build(LogtailSettings, {**given, **more}, "test")


async def next_events(batches: AsyncIterator[Batch], count: int) -> tuple[list[NamedEvent], Any]:
    """Return the next `count` events, and the cursor after them."""
    seen: list[NamedEvent] = []
    async with asyncio.timeout(WITHIN_S):
        async for batch in batches:
            seen += batch.events
            if len(seen) >= count:
                return seen, json.loads(json.dumps(batch.cursor))
    raise AssertionError("the batches ended")


async def test_the_file_of_a_new_day_is_followed_and_the_old_one_not_read_again(
    tmp_path: Path,
) -> None:
    (tmp_path / "20261121").write_text(line(0, "Q", "queue=long"))
    (tmp_path / "20261120.gz").write_bytes(b"packed, and not named by the pattern")
    async with LogtailAdapter("pbs", settings(tmp_path, start_at="beginning")) as adapter:
        batches = adapter.batches(None)
        first, _ = await next_events(batches, 1)
        (tmp_path / "20261122").write_text(line(10, "S", pairs()))
        second, cursor = await next_events(batches, 2)
    with (tmp_path / "20261122").open("a") as day:
        day.write(ended(99, 0))
    async with LogtailAdapter("pbs", settings(tmp_path)) as adapter:
        third, _ = await next_events(adapter.batches(cursor), 3)
    kinds = [[events.KIND_NAMES[event[1]] for event in part] for part in (first, second, third)]
    assert kinds == [
        ["submitted"], ["submitted", "started"], ["submitted", "started", "completed"],
    ]  # fmt: skip


async def test_the_last_deletion_of_a_day_is_told_though_nothing_follows(tmp_path: Path) -> None:
    (tmp_path / "20261121").write_text(line(0, "Q", "queue=long") + line(5, "D"))
    async with LogtailAdapter("pbs", settings(tmp_path, start_at="beginning")) as adapter:
        seen, _ = await next_events(adapter.batches(None), 2)
    assert [event[1] for event in seen] == [events.SUBMITTED, events.REMOVED]
