"""An adapter on a real broker, and a publisher that does not lose what it has to say."""

import asyncio
import contextlib
import random
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import aiomqtt

from outrider.api import Batch, BrokerSettings, NamedEvent, PeerError, build, connected
from outrider_adapters.mqtt import MqttAdapter, MqttSettings
from tests.fixtures.patience import patient
from tests.peers.mosquitto import Mosquitto

WITHIN_S = patient(20.0)
HEARTBEAT_S = 0.2


def settings(broker: Mosquitto, **more: Any) -> MqttSettings:
    given = {
        "host": "127.0.0.1",
        "port": broker.port,
        "username": "outrider",
        "password_file": str(broker.password_file("outrider")),
    }
    return build(MqttSettings, given | more, "test")


def adapter(broker: Mosquitto, **more: Any) -> MqttAdapter:
    made = settings(broker, **more)
    return MqttAdapter("lab", made, heartbeat_s=HEARTBEAT_S, rng=random.Random(7))


class Listener:
    """Return the events of an adapter, in the daemon's order."""

    def __init__(self) -> None:
        self.events: list[NamedEvent] = []
        self.rejected: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.last = Batch([], None)

    async def listen(self, batches: AsyncIterator[Batch]) -> None:
        async for batch in batches:
            self.events += batch.events
            self.rejected.update(batch.rejected)
            self.ignored.update(batch.ignored)
            self.last = batch

    async def until(self, holds: Callable[[], object], what: str) -> None:
        deadline_s = time.monotonic() + WITHIN_S
        while not holds():
            assert time.monotonic() < deadline_s, (
                f"{what}: not within {WITHIN_S:g} s; {len(self.events)} events, rejected "
                f"{dict(self.rejected)}, ignored {dict(self.ignored)}, note {self.last.note!r}"
            )
            await asyncio.sleep(0.02)

    async def until_connected(self) -> None:
        await self.until(lambda: self.last.seen_until_s is not None, "connected")


@asynccontextmanager
async def listening(source: MqttAdapter, cursor: Any = None) -> AsyncIterator[Listener]:
    """Listen until the context is left, which takes every batch that was handed out."""
    listener = Listener()
    async with source:
        task = asyncio.create_task(listener.listen(source.batches(cursor)))
        try:
            yield listener
        finally:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task


@asynccontextmanager
async def publisher(broker: Mosquitto, user: str = "machine") -> AsyncIterator[aiomqtt.Client]:
    given = {"host": "127.0.0.1", "port": broker.port, "username": user}
    given["password_file"] = str(broker.password_file(user))
    async with connected(build(BrokerSettings, given, "test"), "publisher") as client:
        yield client


class PatientPublisher:
    """Sender of readings, which repeats those left unconfirmed by a broken connection.

    In doubt is what was not acknowledged, and what was in the last `doubt_s` before the break: a
    broker acknowledges before it has saved.
    """

    def __init__(self, broker: Mosquitto, pause_s: float, doubt_s: float = 2.0) -> None:
        self.sent: list[tuple[str, float]] = []
        self.breaks = 0
        self._broker = broker
        self._pause_s = pause_s
        self._doubt_s = doubt_s
        self._pending: deque[tuple[str, float]] = deque()
        self._doubtful: deque[tuple[float, tuple[str, float]]] = deque()
        self._enough = False

    def finish(self) -> None:
        """Send the pending messages."""
        self._enough = True

    async def run(self) -> None:
        while True:
            try:
                async with publisher(self._broker) as client:
                    while self._pending or not self._enough:
                        await self._send_one(client)
                        await asyncio.sleep(self._pause_s)
                    return
            except PeerError:
                self.breaks += 1
                self._pending.extendleft(one for _, one in reversed(self._doubtful))
                self._doubtful.clear()
                await asyncio.sleep(0.05)

    async def _send_one(self, client: aiomqtt.Client) -> None:
        if not self._pending:
            one = f"lab-{len(self.sent) % 50}", time.time()
            self.sent.append(one)
            self._pending.append(one)
        machine, time_s = self._pending[0]
        payload = f'{{"watts": 63.5, "time": {time_s!r}}}'
        await client.publish(f"outrider/in/power/{machine}", payload, qos=1, timeout=1.0)
        now_s = time.monotonic()
        self._doubtful.append((now_s, self._pending.popleft()))
        while self._doubtful[0][0] < now_s - self._doubt_s:
            self._doubtful.popleft()
