"""A scrape is rendered beside the event loop, one at a time."""

import asyncio
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from outrider.service.daemon.daemon_view import DaemonView
from outrider.service.journal.recording import Recording
from outrider.service.metrics import expose
from outrider.service.mqtt.publisher import Publisher
from outrider.service.web.endpoints import probes
from tests.fixtures.cores import core_of
from tests.service.web.small_site import SmallSite, visit


class SlowRender:
    """The real exposition, slowed down, with records of its threads and concurrency."""

    def __init__(self) -> None:
        self.threads: list[threading.Thread] = []
        self.now = self.most = 0
        self._lock = threading.Lock()

    def __call__(self, *arguments: Any) -> tuple[bytes, str]:
        with self._lock:
            self.threads.append(threading.current_thread())
            self.now += 1
            self.most = max(self.most, self.now)
        time.sleep(0.2)
        with self._lock:
            self.now -= 1
        return expose(*arguments)


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowRender:
    """A rendering of metrics that takes long."""
    slow = SlowRender()
    monkeypatch.setattr(probes, "expose", slow)
    return slow


async def test_others_are_answered_while_a_scrape_is_rendered(slow: SlowRender) -> None:
    async with visit(SmallSite()) as client:

        async def scrape() -> float:
            async with client.get("/metrics") as answer:
                assert "outrider_jobs" in await answer.text()
            return time.perf_counter()

        async def knock() -> float:
            while not slow.now:  # noqa: ASYNC110 - the rendering thread sets it
                await asyncio.sleep(0.001)
            async with client.get("/healthz") as answer:
                assert answer.status == 200
            return time.perf_counter()

        scraped_s, knocked_s = await asyncio.gather(scrape(), knock())
    assert knocked_s < scraped_s
    assert threading.main_thread() not in slow.threads


async def test_scrapes_at_once_are_rendered_one_after_the_other(slow: SlowRender) -> None:
    async with visit(SmallSite()) as client:

        async def scrape() -> str:
            async with client.get("/metrics") as answer:
                return await answer.text()

        texts = await asyncio.gather(*(scrape() for _ in range(3)))
    assert len(slow.threads) == 3
    assert slow.most == 1
    assert len(set(texts)) == 1


async def test_the_longest_delay_of_the_loop_is_told_once(tmp_path: Path) -> None:
    core = core_of("log", timezone="UTC")
    recording = Recording(tmp_path / "state")
    try:
        view = DaemonView(core, recording, Publisher(recording, lambda: core))
        view.loop_lag_s = 0.25
        told = [view.metrics().numbers["loop_lag_seconds"][()] for _ in range(2)]
    finally:
        recording.close()
    assert told == [0.25, 0.0]
