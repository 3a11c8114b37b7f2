"""A recording that failed is tried again until it works, and goes on where it stopped."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from outrider.ledger import Entry, Journal
from outrider.service import recording as module
from outrider.service.recording import Recording
from tests.ledger.samples import entry_numbers, numbered_entry
from tests.service.running.disks import fill, relieve, small_disk


async def until(true: Callable[[], bool]) -> None:
    """Wait for what comes within moments."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - another thread makes it true
            await asyncio.sleep(0.01)


def large_entry(number: int) -> Entry:
    entry = numbered_entry(number)
    entry.meta = {f"ballast {number}": "x" * 20_000}
    return entry


async def test_a_retry_that_fails_is_followed_by_others_and_told_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_RETRY_S", 0.05)
    with small_disk(tmp_path / "disk", 1) as disk, capture_logs() as logs:
        recording = Recording(disk / "state")
        assert recording.figures()["recording"]
        retries = 0
        retry = recording._writer.retry

        def counted() -> "Future[int]":
            nonlocal retries
            retries += 1
            return retry()

        monkeypatch.setattr(recording._writer, "retry", counted)
        mending = asyncio.create_task(recording.mend())
        await asyncio.to_thread(fill, disk)
        kept = 0
        while recording.failure is None:
            future = await recording.submit(large_entry(kept))
            await asyncio.wait([asyncio.wrap_future(future)])
            kept += 1
        await until(lambda: retries >= 3)
        assert not mending.done(), "who ended it would end the recording for good"
        figures = recording.figures()
        assert (figures["recording"], "full" in figures["failure"]) == (False, True)
        assert (figures["lag_s"] > 0.0, figures["failures"]) == (True, 1)
        await recording.submit(large_entry(kept))
        await asyncio.to_thread(relieve, disk)
        await until(lambda: any(line["event"] == "resume_recording" for line in logs))
        figures = recording.figures()
        assert (figures["recording"], figures["failure"], figures["lag_s"]) == (True, None, 0.0)
        mending.cancel()
        recording.close()
        with Journal(recording.path, read_only=True) as journal:
            assert entry_numbers(journal)[::3] == list(range(kept + 1))
    told = [line["event"] for line in logs]
    assert told.count("stop_recording") == told.count("resume_recording") == 1
