"""The `mqtt` adapter: one task that listens to the broker, and batches of its messages."""

import asyncio
import contextlib
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

import structlog

from outrider.api import (
    Adapter,
    AdapterSettings,
    Batch,
    PeerError,
    ReceivedMessage,
    ServiceNeeds,
    acknowledge_message,
    backoff,
    connected,
    probe_topic,
    receive_messages,
)
from outrider_adapters.mqtt.deduplicator import LATENESS_S, Message
from outrider_adapters.mqtt.event_mapping import Meaning
from outrider_adapters.mqtt.messages import MAX_PAYLOAD_BYTES
from outrider_adapters.mqtt.settings import MqttSettings

if TYPE_CHECKING:
    import aiomqtt
    from paho.mqtt.reasoncodes import ReasonCode


HEARTBEAT_S: Final = 2.0
BATCH_MESSAGES: Final = 500
PAUSE_S: Final = 0.005
"""Seconds without a message after which a batch ends.

A broker sends only a limited number of unacknowledged messages, by default 20. So a longer wait
makes a busy stream slower, and batches no larger.
"""

GATHER_S: Final = 0.05
"""Seconds after which a batch ends in any case.

Messages that were not acknowledged come again after a broken connection.
"""

DOWN_AFTER_S: Final = 10.0
"""Seconds without a broker after which it counts as down; a restart is faster."""

TOO_MANY_WAITING: Final = "too_many_waiting"
REPLACED: Final = "replaced_by_newer"
DROPS_LOGGED_EVERY_S: Final = 60.0

_REFUSED_CODE: Final = 128
_PROBE_NAME: Final = "outrider-doctor"

log = structlog.get_logger()


class MqttAdapter(Adapter):
    """Adapter for owners, machine states and power readings published by machines and meters.

    A message of QoS 1 is acknowledged when the next batch is requested: by then the daemon has
    processed it. Until then the broker keeps it, and sends it again over the next connection.

    Args:
        label: the adapter's name in the configuration; part of the client identifier.
        settings: which broker, and which topics.
        clock: Unix seconds now.
        heartbeat_s: seconds after which a quiet source yields an empty batch.
        rng: random numbers for the pauses between attempts to connect.
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
        self._arrived = WaitingMessages(self._meaning.is_reading)
        self._unacknowledged: list[Arrival] = []
        self._something = asyncio.Event()
        self._away_since_s: float | None = None
        self._caught_up = False
        self._problem: PeerError | None = None
        self._lost_n = 0
        self._drops_logged_s = float("-inf")

    async def batches(self, cursor: Any) -> AsyncIterator[Batch]:
        """Yield batches without end. Raises `ValueError` if the cursor is not this adapter's."""
        self._meaning = Meaning(
            self._settings
        )  # messages that were not acknowledged come again, and are news
        self._meaning.restore(cursor)
        self._unacknowledged = []
        self._arrived.clear()
        self._away_since_s, self._problem = asyncio.get_running_loop().time(), None
        listener = asyncio.create_task(self._listen(), name=f"mqtt-{self.label}")
        try:
            while not listener.done():
                yield await self._next_batch()
            listener.result()  # it only ends by an unexpected error
        finally:
            listener.cancel()
            await asyncio.wait({listener})
            self._arrived.clear()

    def diagnose(self) -> list[tuple[str, str, str, str]]:
        """Check for ``outrider doctor`` that messages published to our topics reach us.

        The test message is empty, which has no meaning, and needs the right to publish.
        """
        topic = f"{self._settings.base}/state/{_PROBE_NAME}"
        who = self._settings.username or "anonymous clients"
        try:
            probe = asyncio.run(probe_topic(self._settings, f"{self.label}-doctor", topic))
        except PeerError as error:
            return [("broker", "fail", str(error), "start the broker, or fix the settings")]
        if probe.comes_back:
            return [
                ("reading", "ok", f"messages published below {self._settings.base}/ arrive", "")
            ]
        if probe.may_write:
            found = f"the broker accepts a message to {topic} and does not deliver it to {who}"
            right = f"topic read {self._settings.base}/#"
            remedy = f"let {who} read there; in Mosquitto's acl_file: {right}"
            return [("reading", "fail", found, remedy)]
        found = f"not tried: {who} may not publish below {self._settings.base}/, as it should be"
        return [("reading", "ok", found, "")]

    def service_needs(self) -> ServiceNeeds:
        """Return the broker, and the files named in its settings."""
        return self._settings.needs

    # -- the connection -----------------------------------------------------------------------

    async def _listen(self) -> None:
        """Stay connected; after an error try again with growing pauses."""
        loop = asyncio.get_running_loop()
        pauses = backoff(self._rng)
        while True:
            try:
                async with connected(
                    self._settings, self.label, clean_session=False, acknowledge=False
                ) as client:
                    await self._subscribe(client)
                    self._away_since_s, self._problem, self._caught_up = None, None, False
                    pauses = backoff(self._rng)
                    await receive_messages(client, lambda message: self._keep(client, message))
            except PeerError as error:
                self._problem = error
            if self._away_since_s is None:
                self._away_since_s = loop.time()
            await asyncio.sleep(next(pauses))

    async def _subscribe(self, client: "aiomqtt.Client") -> None:
        """Subscribe to our topics with QoS 1, and to meters with QoS 0.

        Readings of meters have no time, so they must not be kept until we are back.
        """
        wanted = [(f"{self._settings.base}/#", 1), *((topic, 0) for topic in self._settings.meters)]
        granted = cast("list[ReasonCode]", await client.subscribe(wanted))
        for (topic, _), code in zip(wanted, granted, strict=True):
            if code.value >= _REFUSED_CODE:
                who = self._settings.username or "an anonymous client"
                raise PeerError(
                    f"MQTT broker {self._settings.address}: {who} may not subscribe to {topic}",
                    transient=False,
                )

    def _keep(self, client: "aiomqtt.Client", original: ReceivedMessage) -> None:
        topic, payload, retained, _, qos = original
        arrival = Arrival(Message(topic, payload, retained, self._clock()), self._elapsed_s())
        if qos > 0:
            arrival.client, arrival.original = client, original
        if not self._arrived.add(arrival) and qos > 0:
            acknowledge_message(client, original)  # otherwise it would block the place of others
        self._something.set()

    @staticmethod
    def _elapsed_s() -> float:
        return asyncio.get_running_loop().time()

    # -- batches ------------------------------------------------------------------------------

    async def _next_batch(self) -> Batch:
        for arrival in self._unacknowledged:  # a request for more means that these were processed
            if arrival.client is not None and arrival.original is not None:
                acknowledge_message(arrival.client, arrival.original)
        quiet = await self._wait()
        now_s = self._clock()  # read first: messages that come later may not be in the batch
        self._unacknowledged = self._arrived.take(BATCH_MESSAGES)
        events = [
            event
            for arrival in self._unacknowledged
            for event in self._meaning.events_of(arrival.message)
        ]
        is_away = self._away_since_s is not None
        if not is_away and (quiet or (events and events[-1][0] > now_s - self.lateness_s)):
            self._caught_up = True  # the messages kept at the broker have been processed
        rejected, ignored = self._meaning.take_counts()
        note = self._note(rejected, ignored)
        waits_s = self._waits_s()
        return Batch(
            events=events,
            cursor=self._meaning.save(),
            seen_until_s=None if is_away or not self._caught_up else now_s - waits_s,
            age_s=max(waits_s, self._away_s()),
            rejected=rejected,
            ignored=ignored,
            note=note,
            problem=self._down_because(),
        )

    def _away_s(self) -> float:
        return 0.0 if self._away_since_s is None else self._elapsed_s() - self._away_since_s

    def _waits_s(self) -> float:
        """Return how long the oldest message has waited, in seconds."""
        oldest_s = self._arrived.oldest_heard_s
        return 0.0 if oldest_s is None else self._elapsed_s() - oldest_s

    def _down_because(self) -> str:
        """Return why the adapter is down; empty while it is up, or may be back soon."""
        if self._away_since_s is None:
            return ""
        if self._problem is None or self._problem.transient:
            if self._away_s() < DOWN_AFTER_S:
                return ""
            return str(self._problem or f"MQTT broker {self._settings.address}: does not answer")
        return str(self._problem)

    def _note(self, rejected: dict[str, int], ignored: dict[str, int]) -> str:
        """Return a note for the person on call, and add dropped messages to the counts."""
        dropped, replaced = self._arrived.take_counts()
        if dropped:
            rejected[TOO_MANY_WAITING] = rejected.get(TOO_MANY_WAITING, 0) + dropped
            self._lost_n += dropped
            if self._elapsed_s() - self._drops_logged_s >= DROPS_LOGGED_EVERY_S:
                self._drops_logged_s = self._elapsed_s()
                log.warning(
                    "messages_dropped", adapter=self.label, dropped=self._lost_n,
                    waiting=len(self._arrived), reason="more come than can be taken",
                )  # fmt: skip
                self._lost_n = 0
        if replaced:
            ignored[REPLACED] = ignored.get(REPLACED, 0) + replaced
        complaint = self._meaning.complaint
        drops = self._elapsed_s() - self._drops_logged_s < DROPS_LOGGED_EVERY_S
        notes = (
            str(self._problem or ""),
            "messages are dropped: they arrive faster than they are processed" if drops else "",
            f"last refused: {complaint}" if complaint else "",
        )
        return "; ".join(filter(None, notes))

    async def _wait(self) -> bool:
        """Wait until messages have come and no more are coming; return True if none came."""
        if not self._arrived:
            self._something.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._heartbeat_s):
                    await self._something.wait()
        if not self._arrived:
            return True
        loop = asyncio.get_running_loop()
        until_s = loop.time() + GATHER_S
        before_n = 0
        while before_n < len(self._arrived) < BATCH_MESSAGES and loop.time() < until_s:
            before_n = len(self._arrived)
            await asyncio.sleep(PAUSE_S)
        return False


# -- waiting ---------------------------------------------------------------------------------------
# Bounded queue of messages that have come and wait to be processed.
#
# Of QoS 1 a broker sends only a limited number of unacknowledged messages, and keeps the rest.
# QoS 0 has no such limit. If messages arrive faster than they are processed, the newest reading of
# a meter replaces the one before it. Beyond the bounds messages are dropped, readings first.

MAX_WAITING: Final = 10_000
MAX_WAITING_BYTES: Final = 8 * 1024 * 1024
"""Bound for payloads and topics; readings may use half of both, so owners have space."""
_REPLACE_FROM_N: Final = 500
"""Queue length from which a newer reading replaces an older one."""


class Arrival:
    """One message that waits in the queue.

    Attributes:
        message: topic, payload and time of arrival.
        heard_s: when it came, in seconds of a monotonic clock.
        client, original: connection and message to acknowledge; None for QoS 0.
    """

    __slots__ = ("client", "heard_s", "message", "original")

    def __init__(
        self,
        message: Message,
        heard_s: float,
        client: "aiomqtt.Client | None" = None,
        original: ReceivedMessage | None = None,
    ) -> None:
        self.message = message
        self.heard_s = heard_s
        self.client = client
        self.original = original

    @property
    def size(self) -> int:
        """Number of bytes of its topic and payload."""
        return len(self.message.topic) + len(self.message.payload)


class WaitingMessages:
    """Bounded queue of messages in the order of arrival.

    Args:
        is_reading: True for a meter's topic, where only the newest message matters.
        most_n, most_bytes: the bounds.

    Attributes:
        dropped, replaced: messages lost to the bounds, or to a newer reading, since `take_counts`.
    """

    def __init__(
        self,
        is_reading: Callable[[str], bool],
        max_n: int = MAX_WAITING,
        max_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.dropped = 0
        self.replaced = 0
        self._is_reading = is_reading
        self._max_n = max_n
        self._max_bytes = max_bytes
        self._queue: deque[Arrival] = deque()
        self._newest: dict[str, Arrival] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def oldest_heard_s(self) -> float | None:
        """Time when the oldest waiting message came; None if the queue is empty."""
        return self._queue[0].heard_s if self._queue else None

    def add(self, arrival: Arrival) -> bool:
        """Return a message came. False: there is no room for it, and it is dropped."""
        if (
            len(arrival.message.payload) > MAX_PAYLOAD_BYTES
        ):  # it is refused, and need not be kept whole
            short = arrival.message.payload[: MAX_PAYLOAD_BYTES + 1]
            arrival.message = arrival.message._replace(payload=short)
        share = 1
        if arrival.original is None and self._is_reading(arrival.message.topic):
            if len(self._queue) >= _REPLACE_FROM_N and self._replaces(arrival):
                return True
            share = 2
        size = arrival.size
        if share * len(self._queue) >= self._max_n or (
            share * (self._bytes + size) > self._max_bytes
        ):
            self.dropped += 1
            return False
        self._queue.append(arrival)
        self._bytes += size
        if share == 2:
            self._newest[arrival.message.topic] = arrival
        return True

    def _replaces(self, arrival: Arrival) -> bool:
        """Replace the waiting reading of the same meter, if there is one."""
        before = self._newest.get(arrival.message.topic)
        if before is None:
            return False
        self._bytes += arrival.size - before.size
        before.message = arrival.message
        self.replaced += 1
        return True

    def take(self, max_n: int) -> list[Arrival]:
        """Remove the first messages from the queue and return them."""
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), max_n))]
        for arrival in taken:
            self._bytes -= arrival.size
            if self._newest.get(arrival.message.topic) is arrival:
                del self._newest[arrival.message.topic]
        return taken

    def take_counts(self) -> tuple[int, int]:
        """Return the numbers of messages dropped and replaced since the last call."""
        counts = self.dropped, self.replaced
        self.dropped = self.replaced = 0
        return counts

    def clear(self) -> None:
        """Drop all messages: a broker sends those again that were not acknowledged."""
        self._queue.clear()
        self._newest.clear()
        self._bytes = 0
