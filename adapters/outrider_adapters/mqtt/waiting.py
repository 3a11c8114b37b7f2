"""Messages that have come and wait to be taken: bounded, whatever is sent.

Of QoS 1 a broker sends only so many that are not acknowledged yet, and keeps the rest. For QoS 0
there is no such brake: where more come than can be taken, the newest reading of a meter replaces
the one before it, and beyond the bounds messages are dropped, readings first.
"""

from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from outrider.api import ReceivedMessage
from outrider_adapters.mqtt.deduplicator import Message
from outrider_adapters.mqtt.messages import MOST_BYTES

if TYPE_CHECKING:
    import aiomqtt

MOST_WAITING: Final = 10_000
MOST_WAITING_BYTES: Final = 8 * 1024 * 1024
"""Of payloads and topics. Readings may take the half of both, so that there is room for owners."""
_CROWDED: Final = 500
"""With so many waiting, a newer reading takes an older one's place; with fewer all are told."""


class Arrival:
    """One message that waits.

    Attributes:
        message: what it says.
        heard_s: when it came, in seconds of a clock that only goes on.
        client, original: whom to tell that it was taken; None of QoS 0.
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
        """Bytes of its topic and payload."""
        return len(self.message.topic) + len(self.message.payload)


class WaitingMessages:
    """A queue in the order of arrival.

    Args:
        is_reading: whether a topic is a meter's, where only the newest message matters.
        most_n, most_bytes: the bounds.

    Attributes:
        dropped, replaced: messages lost to the bounds, or to a newer reading, since `take_counts`.
    """

    def __init__(
        self,
        is_reading: Callable[[str], bool],
        most_n: int = MOST_WAITING,
        most_bytes: int = MOST_WAITING_BYTES,
    ) -> None:
        self.dropped = 0
        self.replaced = 0
        self._is_reading = is_reading
        self._most_n = most_n
        self._most_bytes = most_bytes
        self._queue: deque[Arrival] = deque()
        self._newest: dict[str, Arrival] = {}
        self._bytes = 0

    def __len__(self) -> int:
        return len(self._queue)

    @property
    def oldest_heard_s(self) -> float | None:
        """When the first one that waits came; None if none does."""
        return self._queue[0].heard_s if self._queue else None

    def add(self, arrival: Arrival) -> bool:
        """A message came. False: there is no room for it, and it is dropped."""
        if len(arrival.message.payload) > MOST_BYTES:  # it is refused, and need not be kept whole
            short = arrival.message.payload[: MOST_BYTES + 1]
            arrival.message = arrival.message._replace(payload=short)
        share = 1
        if arrival.original is None and self._is_reading(arrival.message.topic):
            if len(self._queue) >= _CROWDED and self._replaces(arrival):
                return True
            share = 2
        size = arrival.size
        if share * len(self._queue) >= self._most_n or (
            share * (self._bytes + size) > self._most_bytes
        ):
            self.dropped += 1
            return False
        self._queue.append(arrival)
        self._bytes += size
        if share == 2:
            self._newest[arrival.message.topic] = arrival
        return True

    def _replaces(self, arrival: Arrival) -> bool:
        """Put a reading in the place of the one of its meter that waits, if one does."""
        before = self._newest.get(arrival.message.topic)
        if before is None:
            return False
        self._bytes += arrival.size - before.size
        before.message = arrival.message
        self.replaced += 1
        return True

    def take(self, most_n: int) -> list[Arrival]:
        """The first messages, which wait no longer."""
        taken = [self._queue.popleft() for _ in range(min(len(self._queue), most_n))]
        for arrival in taken:
            self._bytes -= arrival.size
            if self._newest.get(arrival.message.topic) is arrival:
                del self._newest[arrival.message.topic]
        return taken

    def take_counts(self) -> tuple[int, int]:
        """Messages dropped and replaced since the last time."""
        counts = self.dropped, self.replaced
        self.dropped = self.replaced = 0
        return counts

    def clear(self) -> None:
        """Forget all: a broker sends again what was not acknowledged."""
        self._queue.clear()
        self._newest.clear()
        self._bytes = 0
