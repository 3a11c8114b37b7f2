"""A disk that hangs without an error: it is reported, and nothing is lost."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from outrider.journal import Journal, Writer
from outrider.model.errors import LedgerError
from outrider.service.journal import recording
from outrider.service.journal import recording as recording_module
from outrider.service.journal.recording import Recording
from tests.fixtures.cores import core_of
from tests.journal.samples import entry_numbers, numbered_entry
from tests.service.running.disks import freezable_disk, frozen
from tests.service.running.small_site import SmallSite

HANGS_S = 0.6


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make a disk count as hanging much sooner than after thirty seconds."""
    monkeypatch.setattr(recording_module, "HANGS_S", HANGS_S)
    monkeypatch.setattr(recording, "HANGS_S", HANGS_S)
    monkeypatch.setattr(recording_module, "_RETRY_S", 0.05)


async def until(true: Callable[[], bool]) -> None:
    async with asyncio.timeout(20):
        while not true():  # noqa: ASYNC110 - another thread makes it true
            await asyncio.sleep(0.02)


@pytest.mark.usefixtures("impatient")
async def test_a_frozen_disk_is_told_and_what_came_meanwhile_is_recorded_once_it_thaws(
    tmp_path: Path,
) -> None:
    core = core_of("log")
    with freezable_disk(tmp_path / "disk", tmp_path / "image") as disk:
        recording = Recording(disk / "state")
        assert await recording.snapshot(core)
        mending = asyncio.create_task(recording.retry_while_failed())
        with capture_logs() as logs:
            with frozen(disk):
                futures = [await recording.submit(numbered_entry(n)) for n in range(3)]
                assert recording.failure is None
                with pytest.raises(LedgerError, match="the disk hangs"):
                    await recording.settle()  # which began to wait before that was known
                assert "journal.sqlite: the disk hangs: no write for" in str(recording.failure)
                await until(lambda: recording.figures()["lag_s"] > 0.0)
                began_s = time.monotonic()
                assert not await recording.snapshot(core)  # nothing waits for it any longer
                with pytest.raises(LedgerError, match="the disk hangs"):
                    await recording.recorded()
                await recording.keep_up()
                assert time.monotonic() - began_s < HANGS_S
                futures.append(await recording.submit(numbered_entry(3)))
                assert not any(future.done() for future in futures)
                assert not recording.figures()["recording"]
            seqs = await asyncio.gather(*map(asyncio.wrap_future, futures))
            await until(lambda: any(line["event"] == "recording_resumed" for line in logs))
        assert [line["event"] for line in logs] == [
            "recording_stopped", "snapshot_failed", "recording_resumed",
        ]  # fmt: skip
        assert seqs == sorted(seqs)
        assert recording.failure is None
        await recording.settle()
        mending.cancel()
        recording.close()
        with Journal(disk / "state" / "journal.sqlite", read_only=True) as journal:
            assert entry_numbers(journal)[::3] == [0, 1, 2, 3]


@pytest.mark.usefixtures("impatient")
async def test_a_snapshot_that_finds_no_end_holds_up_nobody_and_the_next_one_waits_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, thaws = core_of("log"), threading.Event()
    recording = Recording(tmp_path / "state")
    write = recording.snapshots.write

    def hanging(seq: int, packed: bytes, time_s: float | None = None) -> Path:
        thaws.wait(20.0)
        return write(seq, packed, time_s)

    monkeypatch.setattr(recording.snapshots, "write", hanging)
    with capture_logs() as logs:
        assert not await recording.snapshot(core)
        began_s = time.monotonic()
        assert not await recording.snapshot(core)
        assert time.monotonic() - began_s < HANGS_S
    assert [line["error"].rsplit(": ", 1)[1] for line in logs] == [
        "no end after 0.6 s", "the last snapshot is not written yet",
    ]  # fmt: skip
    assert recording.snapshots.paths() == []
    thaws.set()
    await until(lambda: len(recording.snapshots.paths()) == 1)
    assert await recording.snapshot(core)
    recording.close()


def test_long_work_of_sqlite_is_no_disk_that_hangs(tmp_path: Path) -> None:
    writer = Writer(Journal(tmp_path / "journal.sqlite"))
    longest_s = 0.0

    def count(journal: Journal) -> int:
        numbers = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 5000000)"
        return int(journal._connection.execute(f"{numbers} SELECT sum(i % 3) FROM n").fetchone()[0])

    began_s = time.monotonic()
    counting = writer.run(count)
    while not counting.done():
        longest_s = max(longest_s, writer.stalled_s)
        time.sleep(0.002)
    took_s = time.monotonic() - began_s
    assert counting.result(1) > 0
    assert longest_s < took_s / 3
    writer.run(Journal.last_seq).result(10)
    assert writer.stalled_s == 0.0
    writer.stop(10)


@pytest.mark.long
def test_a_daemon_on_a_disk_that_hangs_answers_says_so_and_loses_nothing(tmp_path: Path) -> None:
    with freezable_disk(tmp_path / "disk", tmp_path / "image") as disk:
        site = SmallSite(tmp_path, state=disk / "state", head="snapshot_every_s = 2.0\n")
        site.log.run([1, 2])
        with site.daemon as daemon:
            site.wait_until_applied()
            with frozen(disk):
                site.log.run(range(3, 200))
                status = daemon.wait_until(
                    "not recording", lambda s: not s["ledger"]["recording"], within_s=60
                )
                assert "the disk hangs" in status["ledger"]["failure"]
                assert not daemon.get("/readyz")["ready"]
                assert "recording_stopped" in site.log_text()
                assert site.metrics()["outrider_ledger_lag_seconds"] > 0.0
            daemon.wait_until("recording again", lambda s: s["ledger"]["recording"])
            site.wait_until_applied(within_s=60)  # the reader of the log wrote its own note
            assert daemon.get("/readyz")["ready"]
            assert daemon.stop() == 0
        assert site.recorded() == site.log.counts
