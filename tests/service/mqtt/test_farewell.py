"""A publisher that stops publishes it at any moment: a clean end sends no will."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiomqtt
import pytest

from outrider.model.errors import PeerError
from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import PublishSettings
from outrider.service.journal.recording import Recording
from outrider.service.mqtt import publisher as publishing
from outrider.service.mqtt.publisher import Publisher
from tests.fixtures.small_figures import small_figures


class MuteBroker:
    """Takes everything, and sends nothing back."""

    timeout = 10.0

    def __init__(self) -> None:
        self.states: list[str] = []
        self.told = asyncio.Event()

    async def subscribe(self, topic: str, qos: int) -> None:
        """Accept the client's subscription."""

    async def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> None:
        assert (topic, qos, retain) == ("outrider/north/status", 1, True)
        self.states.append(json.loads(payload)["state"])
        self.told.set()

    @property
    async def messages(self) -> AsyncIterator[Any]:
        await asyncio.Event().wait()
        yield None


class RefusingBroker(MuteBroker):
    """Breaks the connection at the second message."""

    async def publish(self, topic: str, payload: bytes, qos: int, retain: bool) -> None:
        await super().publish(topic, payload, qos, retain)
        if self.states[-1] == "offline":
            raise aiomqtt.MqttError("broken off")


async def test_a_broker_that_takes_no_farewell_does_not_hide_what_was_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, broker = small_figures(), RefusingBroker()

    @asynccontextmanager
    async def connected(*_: Any, **__: Any) -> AsyncIterator[MuteBroker]:
        yield broker

    monkeypatch.setattr(publishing, "connected", connected)
    monkeypatch.setattr(publishing, "_ECHO_WITHIN_S", 0.05)
    recording = Recording(tmp_path / "state")
    try:
        publisher = Publisher(recording, lambda: core)
        with pytest.raises(PeerError, match="does not deliver them"):
            await publisher._converse(PublishSettings(host="broker", site="north"))
        assert broker.states == ["online", "offline"]
    finally:
        recording.close(10.0)


async def test_a_stop_before_the_own_message_came_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, broker = small_figures(), MuteBroker()

    @asynccontextmanager
    async def connected(*_: Any, **__: Any) -> AsyncIterator[MuteBroker]:
        yield broker

    monkeypatch.setattr(publishing, "connected", connected)
    recording = Recording(tmp_path / "state")
    try:
        publisher = Publisher(recording, lambda: core)
        publisher.follow(Config(mqtt=PublishSettings(host="broker", site="north")))
        running = asyncio.create_task(publisher.run())
        await broker.told.wait()
        assert broker.states == ["online"]
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        assert broker.states == ["online", "offline"]
    finally:
        recording.close(10.0)
