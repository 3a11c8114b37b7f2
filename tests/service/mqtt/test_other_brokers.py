"""Publishing goes from one broker to another, and the status says of which it holds."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.journal import Entry
from outrider.model.errors import PeerError
from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import PublishSettings
from outrider.service.journal.recording import Recording
from outrider.service.mqtt import publisher as publishing
from outrider.service.mqtt.publisher import Publisher
from tests.fixtures.small_figures import small_figures
from tests.journal.samples import decision
from tests.service.mqtt.test_rows_confirmed import Broker
from tests.service.running.scripted import until


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
        assert [line["event"] for line in lines] == ["broker_connected", "broker_closed"]
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        recording.close(10.0)


class FailingBroker(EchoBroker):
    """A client that loses its connection on request."""

    def __init__(self) -> None:
        super().__init__()
        self.breaks = asyncio.Event()

    @property
    async def messages(self) -> AsyncIterator[Any]:
        reading = asyncio.create_task(self._back.get())
        breaking = asyncio.create_task(self.breaks.wait())
        while True:
            await asyncio.wait({reading, breaking}, return_when=asyncio.FIRST_COMPLETED)
            if breaking.done():
                raise PeerError("the link is lost")
            yield reading.result()
            reading = asyncio.create_task(self._back.get())


async def test_a_broker_that_is_away_or_lost_is_tried_again_and_told_with_its_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, brokers = small_figures(), [FailingBroker(), FailingBroker()]
    steps: list[Any] = [
        PeerError("nobody answers"), KeyError("a fault"), brokers[0], PeerError("away"), brokers[1],
    ]  # fmt: skip
    asked: list[str] = []

    @asynccontextmanager
    async def connected(*_: Any, will: Any, **__: Any) -> AsyncIterator[Any]:
        asked.append(will.topic)
        step = steps.pop(0)
        if isinstance(step, Exception):
            raise step
        yield step

    monkeypatch.setattr(publishing, "connected", connected)
    monkeypatch.setattr(publishing, "backoff", lambda rng: iter([0.1, 0.2, 0.3, 0.4]))
    recording = Recording(tmp_path / "state")
    publisher = Publisher(recording, lambda: core)
    publisher.follow(to("north", health_every_s=0.02))
    shown: Any = publisher.figures
    with capture_logs() as lines:
        running = asyncio.create_task(publisher.run())
        try:
            await until(lambda: shown()["connected"])
            await until(lambda: brokers[0].published.count(("health", 1, True)) >= 3)
            brokers[0].breaks.set()
            await until(lambda: len(asked) == 5 and shown()["connected"])
            await until(lambda: ("health", 1, True) in brokers[1].published)
        finally:
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
            recording.close(10.0)
    assert asked == ["outrider/north/status"] * 5
    lost = [
        (one["error"], one["again_in_s"]) for one in lines if one["event"] == "broker_disconnected"
    ]
    assert lost == [
        ("nobody answers", 0.1), ("KeyError: 'a fault'", 0.2),
        ("the link is lost", 0.1), ("away", 0.2),  # it was there: so it begins anew
    ]  # fmt: skip
    assert [event["event"] for event in lines].count("publisher_failed") == 1, "of a fault of ours"
    assert ("status", 1, True) in brokers[1].published[-1:], "it says goodbye to the one it has"


async def test_while_it_waits_for_one_broker_a_reload_sends_it_to_another_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, broker, opened = small_figures(), EchoBroker(), list[str]()

    @asynccontextmanager
    async def connected(settings: PublishSettings, *_: Any, **__: Any) -> AsyncIterator[Any]:
        opened.append(settings.host)
        if settings.host == "away":
            raise PeerError("nobody answers")
        yield broker

    monkeypatch.setattr(publishing, "connected", connected)
    monkeypatch.setattr(publishing, "backoff", lambda rng: iter([3_600.0]))
    recording = Recording(tmp_path / "state")
    publisher = Publisher(recording, lambda: core)
    publisher.follow(to("away"))
    running = asyncio.create_task(publisher.run())
    shown: Any = publisher.figures
    try:
        await until(lambda: shown()["failure"] == "nobody answers")
        publisher.follow(to("there"))
        await until(lambda: shown()["connected"])
        assert opened == ["away", "there"]
        assert shown()["failure"] is None
    finally:
        running.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await running
        recording.close(10.0)


async def test_rows_that_were_pruned_before_they_were_published_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, client = small_figures(), Broker()
    told: Any = client
    recording = Recording(tmp_path / "state")
    try:
        publisher = Publisher(recording, lambda: core)
        settings = PublishSettings(host="broker", site="north")
        await publisher._place.begin()
        for n in range(6):
            (await recording.submit(Entry(decisions=[decision(float(n), f"{n}.0")]))).result(10)
        await recording.retention.prune(3.0, 1e9)
        with capture_logs() as lines:
            await publisher._publish_piece(told, settings)
        assert [line["event"] for line in lines if "lost" in line["event"]] == [
            "unpublished_rows_lost"
        ]
        figures = publisher._place.figures()
        assert (figures["lost"], figures["published"]["decisions"]) == (3, 3)
        assert [seq for _, seq in client.heard] == [4, 5, 6]
    finally:
        recording.close(10.0)
