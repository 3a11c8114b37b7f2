"""Publishing goes from one broker to another, and the status says of which it holds."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.service.config.declarations import Config
from outrider.service.config.mqtt_settings import PublishSettings
from outrider.service.mqtt import publisher as publishing
from outrider.service.mqtt.publisher import Publisher
from outrider.service.recording import Recording
from tests.fixtures.small_figures import small_figures


class Message:
    """A message that comes back."""

    retain = False

    def __init__(self, payload: bytes) -> None:
        self.payload = payload


class EchoBroker:
    """Confirms everything, and sends it back to who subscribed."""

    timeout = 10.0
    pending_calls_threshold = 10

    def __init__(self) -> None:
        self.published: list[tuple[str, int, bool]] = []
        self._back: asyncio.Queue[Message] = asyncio.Queue()

    async def subscribe(self, topic: str, qos: int) -> None:
        assert (topic, qos) == ("outrider/north/status", 1)

    async def publish(self, topic: str, payload: bytes, qos: int, retain: bool = False) -> None:
        self.published.append((topic.rpartition("/")[2], qos, retain))
        self._back.put_nowait(Message(payload))

    @property
    async def messages(self) -> AsyncIterator[Any]:
        while True:
            yield await self._back.get()


def to(host: str, **settings: Any) -> Config:
    return Config(mqtt=PublishSettings(host=host, site="north", **settings))


async def until(holds: Any) -> None:
    async with asyncio.timeout(20):
        while not holds():  # noqa: ASYNC110 - another task makes it so
            await asyncio.sleep(0.01)


async def test_who_is_told_and_who_not_yet_is_shown_for_the_broker_in_force(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, broker, opened = small_figures(), EchoBroker(), list[str]()

    @asynccontextmanager
    async def connected(settings: PublishSettings, *_: Any, **__: Any) -> AsyncIterator[Any]:
        opened.append(settings.host)
        if settings.host == "silent":
            await asyncio.Event().wait()
        yield broker

    monkeypatch.setattr(publishing, "connected", connected)
    recording = Recording(tmp_path / "state")
    publisher = Publisher(recording, lambda: core)
    running = asyncio.create_task(publisher.run())
    shown: Any = publisher.figures
    try:
        assert shown() is None
        publisher.follow(to("first"))
        assert not shown()["connected"]
        with capture_logs() as lines:
            await until(lambda: ("health", 1, True) in broker.published)
            assert (shown()["connected"], shown()["failure"]) == (True, None)
            assert shown()["broker"].startswith("first")
            publisher.follow(to("first"))
            publisher.follow(to("silent"))
            await until(lambda: opened == ["first", "silent"])
            assert (shown()["connected"], shown()["broker"][:6]) == (False, "silent")
        assert broker.published[-1] == ("status", 1, True), "it says goodbye"
        assert [line["event"] for line in lines] == ["reach_broker", "leave_broker"]
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        recording.close(10.0)
