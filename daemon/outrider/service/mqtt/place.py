"""How far the journal has been published, kept in the journal itself.

So it goes where the journal goes: back with it when a power failure takes its last rows, and to
the present with a new one.
"""

import time
from collections import Counter, deque
from collections.abc import Callable
from typing import Any, Final

from outrider.ledger import Entry, Journal
from outrider.service.mqtt.messages import KINDS
from outrider.service.recording import Recording

PLACE_KEY: Final = "mqtt"
DOUBT_S: Final = 5.0
"""What a broker confirmed so shortly before it was lost, it may not have saved or passed on."""

_SAVE_EVERY: Final = 10_000
"""Sequence numbers after which the place is kept though nothing among them was published."""


class Place:
    """Where in the journal the publisher stands, and what it has published so far.

    Args:
        recording: the journal.
        clock: seconds, monotonic.

    Attributes:
        seq: everything up to this sequence number is published; None before the first time.
        published: rows that the broker confirmed, by kind; one that is sent again counts again.
        lost: sequence numbers that retention removed before they were looked at.
    """

    def __init__(self, recording: Recording, clock: Callable[[], float] = time.monotonic) -> None:
        self._recording = recording
        self._clock = clock
        with Journal(recording.path, read_only=True) as journal:
            kept = journal.meta(PLACE_KEY, {"seq": None, "published": {}, "lost": 0})
        self.seq: int | None = kept["seq"]
        self.published = Counter(kept["published"])
        self.lost: int = kept["lost"]
        self._kept_seq = self.seq or 0
        self._reached = self.seq
        self._steps = deque[tuple[float, int]]()
        """When the last rows were confirmed, and where it stood before them."""

    @property
    def behind(self) -> int:
        """Sequence numbers that are recorded and not looked at yet."""
        return 0 if self.seq is None else max(0, self._recording.last_seq - self.seq)

    async def begin(self) -> None:
        """The first time: begin with what is recorded from now on."""
        if self.seq is None:
            await self.move_to(self._recording.last_seq, worth_keeping=True)

    async def move_to(self, seq: int, worth_keeping: bool) -> None:
        """Go on to a sequence number, and keep the place if it is worth a row.

        While the disk is full nothing is kept; the next time keeps it.
        """
        now_s = self._clock()
        while self._steps and self._steps[0][0] < now_s - DOUBT_S:
            self._steps.popleft()
        if worth_keeping and self._reached is not None:
            self._steps.append((now_s, self._reached))
        self._reached = seq
        await self._stand(seq, worth_keeping or seq - self._kept_seq > _SAVE_EVERY)

    async def _stand(self, seq: int, worth_keeping: bool) -> None:
        self.seq = seq
        if worth_keeping and self._recording.failure is None:
            self._kept_seq = seq
            kept = {"seq": seq, "published": dict(self.published), "lost": self.lost}
            await self._recording.submit(Entry(meta={PLACE_KEY: kept}))

    async def go_back(self) -> None:
        """The broker was lost: send again what it confirmed in its last seconds.

        A broker that is killed forgets what it had not saved, and it confirms before it saves.
        It is kept, for the daemon may be stopped before the broker is back.
        """
        since_s = self._clock() - DOUBT_S
        doubted = (seq for at_s, seq in self._steps if at_s >= since_s)
        first = next(doubted, self._reached)
        self._steps.clear()
        if first is not None:
            self._reached = first
            await self._stand(first, worth_keeping=first != self._kept_seq)

    def figures(self) -> dict[str, Any]:
        """For status and metrics."""
        return {
            "published": {kind: self.published[kind] for kind in KINDS},
            "last_seq": self._recording.last_seq if self.seq is None else self.seq,
            "behind": self.behind,
            "lost": self.lost,
        }
