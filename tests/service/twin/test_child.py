"""The twin process as a child of a daemon without a service manager."""

import asyncio
import os
import signal
import time
from pathlib import Path

from outrider.service.config.loaded import load_config
from outrider.service.twin.child import TwinChild
from tests.service.running.small_site import LOG_TABLE, SmallSite
from tests.service.twin.conftest import MakeSite
from tests.service.twin.test_cycle import LONG, is_running
from tests.service.twin.watched_site import HANGS_AFTER_S, NICE


async def until_other_than(child: TwinChild, pid: int | None) -> int:
    """Wait for the next process; its number."""
    async with asyncio.timeout(HANGS_AFTER_S):
        while child.pid in (None, pid):  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.05)
    assert child.pid is not None
    return child.pid


def test_it_is_started_again_when_it_dies_and_ends_with_the_task(make_site: MakeSite) -> None:
    site = make_site(LONG)

    async def live() -> list[int]:
        child = TwinChild(lambda: load_config(site.config), first_s=0.0)
        task = asyncio.create_task(child.run())
        first = await until_other_than(child, None)
        os.kill(first, signal.SIGKILL)
        killed_s = time.monotonic()
        second = await until_other_than(child, first)
        assert time.monotonic() - killed_s > 4.0, "not at once"
        began_s = time.monotonic()
        task.cancel()
        await asyncio.wait([task])
        assert time.monotonic() - began_s < 3.0
        return [first, second]

    pids, deadline_s = asyncio.run(live()), time.monotonic() + HANGS_AFTER_S
    while [pid for pid in pids if is_running(pid)]:
        assert time.monotonic() < deadline_s
        time.sleep(0.05)


def test_where_it_is_never_asked_none_is_started(make_site: MakeSite) -> None:
    site = make_site("every_s = 0")

    async def live() -> int | None:
        child = TwinChild(lambda: load_config(site.config), first_s=0.0)
        task = asyncio.create_task(child.run())
        await asyncio.sleep(1.0)
        pid = child.pid
        task.cancel()
        await asyncio.wait([task])
        return pid

    assert asyncio.run(live()) is None


def children(pid: int) -> list[int]:
    """Return the processes that a process started and that have not ended."""
    told = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in told if is_running(int(child))]


def test_a_daemon_that_is_killed_takes_it_along_and_one_of_systemd_has_none(
    tmp_path: Path,
) -> None:
    for name in ("alone", "managed"):
        (tmp_path / name).mkdir()
    tables = f"[twin]\nnice = {NICE}\n{LOG_TABLE}"
    alone = SmallSite(tmp_path / "alone", tables=tables, environ={"NOTIFY_SOCKET": ""})
    managed = SmallSite(tmp_path / "managed", environ={"NOTIFY_SOCKET": "@nobody-listens"})
    with alone.daemon, managed.daemon:
        answer, deadline_s = alone.state / "twin.json", time.monotonic() + HANGS_AFTER_S
        while not answer.exists():
            assert time.monotonic() < deadline_s
            time.sleep(0.2)
        assert alone.daemon.process is not None
        assert managed.daemon.process is not None
        [child] = children(alone.daemon.process.pid)
        assert os.getpriority(os.PRIO_PROCESS, child) == NICE
        assert children(managed.daemon.process.pid) == []
        assert not (managed.state / "twin.json").exists()
        alone.daemon.process.kill()
        deadline_s = time.monotonic() + HANGS_AFTER_S
        while is_running(child):
            assert time.monotonic() < deadline_s
            time.sleep(0.1)
