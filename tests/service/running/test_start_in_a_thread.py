"""The start in a thread: its progress, and its end when the daemon is stopped."""

import asyncio
import threading
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from outrider.model.errors import LedgerError
from outrider.service.host.sdnotify import ServiceManager
from outrider.service.journal.restart import Input, StartProgress, StartStoppedError
from outrider.service.process import app
from outrider.service.process.app import Start
from tests.service.views.test_service_manager import listening


def rows(n: int) -> list[Input]:
    return [(seq, "log", (float(seq), 0, "x", None)) for seq in range(101, 101 + n)]


def test_rows_pass_through_and_the_share_of_the_journal_is_told_every_64() -> None:
    progress = StartProgress()
    assert progress.sentence == "still starting: opening the journal"
    progress.begin("replaying the journal")
    watched = progress.watch(rows(200), 100, 300)
    seen = [(row[0], progress.fed, progress.ratio) for row in watched]
    assert [one[0] for one in seen] == list(range(101, 301))
    assert seen[62][1:] == (0, 0.0)
    assert seen[63][1:] == (64, 0.32)
    assert seen[-1][1:] == (192, 0.96)
    assert progress.ratio == 1.0
    assert progress.sentence == (
        "still starting: replaying the journal, 192 inputs so far (100% of the journal)"
    )
    assert list(progress.watch([], 100, 100)) == []
    assert (progress.fed, progress.ratio) == (0, 1.0)


def test_a_start_that_is_told_to_stop_ends_at_its_next_sign_of_life() -> None:
    progress = StartProgress()
    watched = progress.watch(rows(200), 100, 300)
    next(watched)
    progress.stop()
    assert [next(watched)[0] for _ in range(62)] == list(range(102, 164))
    with pytest.raises(StartStoppedError):
        next(watched)
    with pytest.raises(StartStoppedError, match="stop requested while starting"):
        progress.begin("something else")


@pytest.fixture(autouse=True)
def _often(monkeypatch: pytest.MonkeyPatch) -> None:
    """Report the progress of a start often."""
    monkeypatch.setattr(app, "_REPORT_EVERY_S", 0.02)


async def test_systemd_is_asked_for_time_as_long_as_it_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, may_end = str(tmp_path / "notify"), threading.Event()
    progress = StartProgress()
    with listening(path) as listener, capture_logs() as lines:
        listener.setblocking(False)

        def make() -> str:
            for _ in progress.watch(rows(64), 100, 200):
                pass
            may_end.wait(20)
            return "made"

        service = ServiceManager({"NOTIFY_SOCKET": path})
        start = Start(progress, service, asyncio.Event(), within_s=1.0)
        work = asyncio.create_task(start.run(make))
        loop = asyncio.get_running_loop()
        message = b""
        async with asyncio.timeout(20):
            while b"64 inputs so far" not in message:
                message = await loop.sock_recv(listener, 4096)
        assert message.startswith(
            b"EXTEND_TIMEOUT_USEC=60000000\nWATCHDOG=1\nSTATUS=still starting: "
        )
        monkeypatch.setattr(app, "_STUCK_S", 0.0)  # no sign of life for so long
        while not work.done():
            may_end.set()
            await asyncio.sleep(0.01)
        assert await work == "made"
    fed = [line for line in lines if line["event"] == "journal_replayed"]
    assert fed
    assert (fed[0]["inputs"], fed[0]["ratio"]) == (64, 1.0)


async def test_what_it_raises_is_raised_here() -> None:
    def make() -> None:
        raise LedgerError("no room")

    with pytest.raises(LedgerError, match="no room"):
        await Start(StartProgress(), ServiceManager({}), asyncio.Event(), 1.0).run(make)


async def test_told_to_stop_it_ends_with_the_threads_own_word() -> None:
    progress, stopped, began = StartProgress(), asyncio.Event(), threading.Event()

    def make() -> str:
        began.set()
        for _ in range(10_000):
            progress.move()
            threading.Event().wait(0.01)
        return "for ever"

    with capture_logs() as lines:
        work = asyncio.create_task(Start(progress, ServiceManager({}), stopped, 20.0).run(make))
        await asyncio.to_thread(began.wait, 20)
        stopped.set()
        with pytest.raises(StartStoppedError):
            await work
    assert [line["reason"] for line in lines if line["event"] == "daemon_stopped"] == [
        "stop requested while starting"
    ]


async def test_what_was_made_before_it_was_told_to_stop_is_given() -> None:
    stopped = asyncio.Event()
    start = Start(StartProgress(), ServiceManager({}), stopped, 1.0)
    assert await start.run(lambda: 7) == 7
