"""Backlog of rows: reading waits for the disk instead of filling the memory."""

import asyncio
import threading
from pathlib import Path

from structlog.testing import capture_logs

from outrider.journal import Journal
from outrider.service.journal import recording as module
from outrider.service.journal.recording import Recording
from tests.journal.samples import numbered_entry
from tests.service.running.disks import fill, small_disk


async def test_more_is_read_only_when_what_was_read_is_on_record(tmp_path: Path) -> None:
    recording = Recording(tmp_path / "state")
    let_go = threading.Event()

    def occupied(_: Journal) -> bool:
        return let_go.wait(60.0)

    busy = recording._writer.run(occupied)
    rows = 0
    with capture_logs() as logs:
        while rows < module._MAX_BACKLOG_ROWS:
            async with asyncio.timeout(5):
                await recording.keep_up()
            entry = numbered_entry(1, rows=500)
            rows += entry.rows()
            await recording.submit(entry)
        waiting = asyncio.create_task(recording.keep_up())
        await asyncio.sleep(0.2)
        assert not waiting.done()
        let_go.set()
        async with asyncio.timeout(60):
            await waiting
    assert recording._writer.waiting_rows == 0
    assert busy.done()
    assert logs == []
    recording.close()


async def test_while_nothing_can_be_recorded_it_is_read_on(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 1) as disk:
        recording = Recording(disk / "state")
        await asyncio.to_thread(fill, disk)
        number = 0
        while (
            recording.failure is None or recording._writer.waiting_rows < module._MAX_BACKLOG_ROWS
        ):
            number += 1
            future = await recording.submit(numbered_entry(number, rows=500))
            await asyncio.gather(asyncio.wrap_future(future), return_exceptions=True)
        async with asyncio.timeout(5):
            await recording.keep_up()
        assert recording._writer.waiting_rows >= module._MAX_BACKLOG_ROWS
        recording.close()
