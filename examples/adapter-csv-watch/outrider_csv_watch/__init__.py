"""Adapter on one screen: it follows a CSV file to which a site's own scripts append.

Columns: ``time_s,event,job,machine``. A row without a machine is any event but ``started``.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from outrider.api import Adapter, AdapterSettings, Batch, JobSpec, NamedEvent, events

_EXTRAS: dict[str, Any] = {
    "submitted": JobSpec(),
    "completed": None,
    "evicted": "unknown",
    "removed": "removed",
}


class CsvWatchSettings(AdapterSettings, frozen=True, kw_only=True):
    """Settings: the file to follow."""

    path: Annotated[str, Meta(description="The CSV file. It need not be there yet.")]
    poll_s: Annotated[
        float, Meta(ge=0.01, le=10.0, description="Seconds between two looks at the file.")
    ] = 1.0


class CsvWatch(Adapter):
    """Adapter that follows a file by its size; the cursor is the number of bytes consumed."""

    name = "csv_watch"
    description = "follows a CSV file of job events"
    api_version = 1
    settings_type = CsvWatchSettings
    sees = ("started", *_EXTRAS)
    inferred = True  # machines are known only because jobs ran there

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield a batch at every look, also without events, as a sign of life."""
        path, consumed, away_since = Path(self.settings.path), int(cursor or 0), None
        while True:
            now = time.time()
            batch = Batch(events=[], cursor=consumed)
            try:
                new = (await asyncio.to_thread(path.read_bytes))[consumed:]
            except FileNotFoundError:
                away_since = away_since or now
                batch.age_s, batch.note = now - away_since, f"{path} is not there"
            else:
                away_since = None
                whole = new[: new.rfind(b"\n") + 1]  # a half line waits for its rest
                for line in whole.decode(errors="replace").splitlines():
                    event = read_row(line)
                    if event is None:
                        batch.rejected["row"] = batch.rejected.get("row", 0) + 1
                    else:
                        batch.events.append(event)
                consumed += len(whole)
                batch.cursor, batch.seen_until_s = consumed, now
            yield batch
            await asyncio.sleep(self.settings.poll_s)


def read_row(line: str) -> NamedEvent | None:
    """Return the event of a row, or None if it is none.

    >>> read_row("12.5,started,7,lab-1")
    (12.5, 9, '7', ('lab-1', 1))
    """
    try:
        time_s, name, job, machine = line.split(",")
        extra = (machine, 1) if name == "started" else _EXTRAS[name]
        return float(time_s), events.KIND_NUMBERS[name], job, extra
    except (ValueError, KeyError):
        return None
