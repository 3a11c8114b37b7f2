"""The adapter: one task that listens to the broker, and batches of what it heard."""

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple, cast

from outrider.api import (
    Adapter,
    AdapterSettings,
    Batch,
    PeerError,
    acknowledge_message,
    backoff,
    connected,
)
from outrider_adapters.mqtt.deduplicator import LATENESS_S, Message
from outrider_adapters.mqtt.event_mapping import Meaning
from outrider_adapters.mqtt.settings import MqttSettings

if TYPE_CHECKING:
    import aiomqtt
    from paho.mqtt.reasoncodes import ReasonCode

HEARTBEAT_S: Final = 2.0
BATCH_MESSAGES: Final = 500
PAUSE_S: Final = 0.005
"""A batch ends when nothing came for so long. A broker sends only so many messages that are not
acknowledged yet, by default 20, so longer waiting makes a busy stream slower, not thicker."""

GATHER_S: Final = 0.05
"""It ends after so long in any case: what was not acknowledged comes again after a broken
connection."""

_REFUSED_CODE: Final = 128


class _Arrival(NamedTuple):
    client: "aiomqtt.Client"
    original: "aiomqtt.Message"
    message: Message


class MqttAdapter(Adapter):
    """Owners, machine states and power readings that machines and meters publish.

    A message of QoS 1 is acknowledged when the batch after it is asked for: by then the daemon
    has taken it. Until then the broker keeps it, and sends it again over the next connection.

    Args:
        label: its name in the configuration; part of the client identifier.
        settings: which broker, and which topics.
        clock: Unix seconds now.
        heartbeat_s: seconds after which a quiet source yields an empty batch.
        rng: for the pauses between tries to connect.
    """

    name: ClassVar[str] = "mqtt"
    description: ClassVar[str] = "listens to owners, machine states and power meters over MQTT"
    api_version = 1
    settings_type: ClassVar[type[AdapterSettings]] = MqttSettings
    sees: ClassVar[tuple[str, ...]] = (
        "owner_came",
        "owner_went",
        "usable",
        "drained",
        "rebooted",
        "asleep",
        "woken",
        "joined",
        "left",
        "power",
    )
    lateness_s: float = LATENESS_S

    def __init__(
        self,
        label: str,
        settings: MqttSettings,
        clock: Callable[[], float] = time.time,
        heartbeat_s: float = HEARTBEAT_S,
        rng: random.Random | None = None,
    ) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._clock = clock
        self._heartbeat_s = heartbeat_s
        self._rng = rng or random.Random()
        self._meaning = Meaning(settings)
        self._arrived: deque[_Arrival] = deque()
        self._handed_out: list[_Arrival] = []
        self._something = asyncio.Event()
        self._away_since_s: float | None = None
        self._caught_up = False
        self._problem = ""

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches for ever. Raises `ValueError` if the cursor is not this adapter's."""
        self._meaning = Meaning(self._settings)  # what was not taken comes again, and is news
        self._meaning.restore(cursor)
        self._handed_out = []
        self._arrived.clear()
        self._away_since_s = asyncio.get_running_loop().time()
        listener = asyncio.create_task(self._listen(), name=f"mqtt-{self.label}")
        try:
            while not listener.done():
                yield await self._next_batch()
            listener.result()  # it only ends by an error that nobody foresaw
        finally:
            listener.cancel()
            await asyncio.wait({listener})

    # -- the connection -----------------------------------------------------------------------

    async def _listen(self) -> None:
        """Keep connected for ever; after an error try again, later and later."""
        loop = asyncio.get_running_loop()
        pauses = backoff(self._rng)
        while True:
            try:
                async with connected(
                    self._settings, self.label, clean_session=False, acknowledge=False
                ) as client:
                    await self._subscribe(client)
                    self._away_since_s, self._problem, self._caught_up = None, "", False
                    pauses = backoff(self._rng)
                    async for message in client.messages:
                        self._keep(client, message)
            except PeerError as error:
                self._problem = str(error)
            if self._away_since_s is None:
                self._away_since_s = loop.time()
            await asyncio.sleep(next(pauses))

    async def _subscribe(self, client: "aiomqtt.Client") -> None:
        """Ours with QoS 1. Meters tell no time, so a reading must not wait for us: QoS 0."""
        wanted = [(f"{self._settings.base}/#", 1), *((topic, 0) for topic in self._settings.meters)]
        granted = cast("list[ReasonCode]", await client.subscribe(wanted))
        for (topic, _), code in zip(wanted, granted, strict=True):
            if code.value >= _REFUSED_CODE:
                who = self._settings.username or "nobody"
                raise PeerError(
                    f"MQTT broker {self._settings.address}: {who} may not subscribe to {topic}",
                    transient=False,
                )

    def _keep(self, client: "aiomqtt.Client", original: "aiomqtt.Message") -> None:
        message = Message(original.topic.value, original.payload, original.retain, self._clock())
        self._arrived.append(_Arrival(client, original, message))
        self._something.set()

    # -- batches ------------------------------------------------------------------------------

    async def _next_batch(self) -> Batch:
        for arrival in self._handed_out:  # to be asked for more means that these were taken
            acknowledge_message(arrival.client, arrival.original)
        quiet = await self._wait()
        now_s = self._clock()  # before the taking: what comes later may not be in the batch
        self._handed_out = [
            self._arrived.popleft() for _ in range(min(len(self._arrived), BATCH_MESSAGES))
        ]
        events = [
            event
            for arrival in self._handed_out
            for event in self._meaning.events_of(arrival.message)
        ]
        is_away = self._away_since_s is not None
        if not is_away and (quiet or (events and events[-1][0] > now_s - self.lateness_s)):
            self._caught_up = True  # what waited for us at the broker has been told
        rejected, ignored = self._meaning.take_counts()
        complaint = self._meaning.complaint
        notes = (self._problem, f"last refused: {complaint}" if complaint else "")
        return Batch(
            events=events,
            cursor=self._meaning.save(),
            seen_until_s=None if is_away or not self._caught_up else now_s,
            age_s=self._age_s(),
            rejected=rejected,
            ignored=ignored,
            note="; ".join(filter(None, notes)),
        )

    def _age_s(self) -> float:
        if self._away_since_s is None:
            return 0.0
        return asyncio.get_running_loop().time() - self._away_since_s

    async def _wait(self) -> bool:
        """Until messages have come, and no more are coming; True if none came for a while."""
        if not self._arrived:
            self._something.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._something.wait(), self._heartbeat_s)
        if not self._arrived:
            return True
        loop = asyncio.get_running_loop()
        until_s = loop.time() + GATHER_S
        before_n = 0
        while before_n < len(self._arrived) < BATCH_MESSAGES and loop.time() < until_s:
            before_n = len(self._arrived)
            await asyncio.sleep(PAUSE_S)
        return False
