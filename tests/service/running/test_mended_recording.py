"""A failed recording is retried until it works, and continues where it stopped."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from outrider.journal import Journal
from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.journal import recording as module
from outrider.service.journal.recording import Recording
from outrider.service.mqtt.publisher import Publisher
from outrider.service.web.endpoints.status import whole_status
from tests.fixtures.cores import core_of
from tests.journal.samples import big_entry, entry_numbers
from tests.service.running.disks import fill, relieve, small_disk


async def until(true: Callable[[], bool]) -> None:
    """Wait for what comes within moments."""
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - another thread makes it true
            await asyncio.sleep(0.01)


async def test_on_a_full_disk_nothing_is_pruned_and_no_snapshot_written_and_that_is_told(
    tmp_path: Path,
) -> None:
    core = core_of("log")
    with small_disk(tmp_path / "disk", 1) as disk:
        recording = Recording(disk / "state")
        assert await recording.snapshot(core)
        assert (len(recording.snapshots.paths()), recording.snapshot_used) == (1, True)
        await asyncio.to_thread(fill, disk)
        while recording.failure is None:
            future = await recording.submit(big_entry(recording.rows.total()))
            await asyncio.gather(asyncio.wrap_future(future), return_exceptions=True)
        failures = recording.failures
        with capture_logs() as logs:
            await recording.retention.prune(1e9, 2e9)
            await recording.retention.keep_within(1_000)
            assert not await recording.snapshot(core)
        assert [line["event"] for line in logs] == [
            "pruning_failed", "pruning_failed", "snapshot_failed",
        ]  # fmt: skip
        assert all("full" in line["error"] for line in logs)
        assert recording.failures == failures + 1
        assert recording.retention.over_budget is None
        assert len(recording.snapshots.paths()) == 1
        recording.close()


async def test_a_state_that_cannot_be_saved_is_told_by_its_fault_and_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core = core_of("log")
    recording = Recording(tmp_path)

    def fail() -> None:
        raise KeyError("a plugin's own")

    with monkeypatch.context() as broken, capture_logs() as logs:
        broken.setattr(core, "save", fail)
        assert not await recording.snapshot(core)
    assert [line["error"] for line in logs] == ['KeyError: "a plugin\'s own"']
    assert (recording.snapshot_at, recording.failures) == (None, 1)
    assert recording.figures()["snapshot_age_s"] is None
    assert await recording.snapshot(core)
    assert 0.0 <= recording.figures()["snapshot_age_s"] < 60.0
    recording.close()


async def test_what_is_dropped_for_the_budget_is_counted_and_told_once_it_is_too_little(
    tmp_path: Path,
) -> None:
    core = core_of("log")
    recording = Recording(tmp_path)
    for number in range(60):
        (await recording.submit(big_entry(number))).result(10)
    used = recording.figures()["size_bytes"]
    await recording.retention.keep_within(2 * used)
    assert (recording.retention.over_budget, recording.figures()["dropped_rows"]) == (None, 0)
    with capture_logs() as logs:
        await recording.retention.keep_within(1)
    [line] = logs
    assert line["event"] == "budget_exceeded"
    assert recording.retention.over_budget is not None
    assert "more than its budget of 1; what is left is newer" in recording.retention.over_budget
    view = DaemonView(core, recording, Publisher(recording, lambda: core))
    assert recording.retention.over_budget in whole_status(view)["notes"]
    recording.close()


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
        mending = asyncio.create_task(recording.retry_while_failed())
        await asyncio.to_thread(fill, disk)
        kept = 0
        while recording.failure is None:
            future = await recording.submit(big_entry(kept))
            await asyncio.gather(asyncio.wrap_future(future), return_exceptions=True)
            kept += 1
        await until(lambda: retries >= 3)
        assert not mending.done(), "who ended it would end the recording for good"
        figures = recording.figures()
        assert (figures["recording"], "full" in figures["failure"]) == (False, True)
        assert (figures["lag_s"] > 0.0, figures["failures"]) == (True, 1)
        await recording.submit(big_entry(kept))
        await asyncio.to_thread(relieve, disk)
        await until(lambda: any(line["event"] == "recording_resumed" for line in logs))
        figures = recording.figures()
        assert (figures["recording"], figures["failure"], figures["lag_s"]) == (True, None, 0.0)
        mending.cancel()
        recording.close()
        with Journal(recording.path, read_only=True) as journal:
            assert entry_numbers(journal)[::3] == list(range(kept + 1))
    names = [line["event"] for line in logs]
    assert names.count("recording_stopped") == names.count("recording_resumed") == 1
