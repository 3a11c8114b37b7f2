"""How far the journal has been published, kept in the journal itself.

So it goes where the journal goes: back with it when a power failure takes its last rows, and to
the present with a new one.
"""

from collections import Counter
from typing import Any, Final

from outrider.ledger import Entry, Journal
from outrider.service.mqtt.messages import KINDS
from outrider.service.recording import Recording

PLACE_KEY: Final = "mqtt"
_SAVE_EVERY: Final = 10_000
"""Sequence numbers after which the place is kept though nothing among them was published."""


class Place:
    """Where in the journal the publisher stands, and what it has published so far.

    Args:
        recording: the journal.

    Attributes:
        seq: everything up to this sequence number is published; None before the first time.
        published: rows that the broker confirmed, by kind.
        lost: sequence numbers that retention removed before they were looked at.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        with Journal(recording.path, read_only=True) as journal:
            kept = journal.meta(PLACE_KEY, {"seq": None, "published": {}, "lost": 0})
        self.seq: int | None = kept["seq"]
        self.published = Counter(kept["published"])
        self.lost: int = kept["lost"]
        self._kept_seq = self.seq or 0

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
        self.seq = seq
        worth_keeping = worth_keeping or seq - self._kept_seq > _SAVE_EVERY
        if worth_keeping and self._recording.failure is None:
            self._kept_seq = seq
            kept = {"seq": seq, "published": dict(self.published), "lost": self.lost}
            await self._recording.submit(Entry(meta={PLACE_KEY: kept}))

    def figures(self) -> dict[str, Any]:
        """For status and metrics."""
        return {
            "published": {kind: self.published[kind] for kind in KINDS},
            "last_seq": self._recording.last_seq if self.seq is None else self.seq,
            "behind": self.behind,
            "lost": self.lost,
        }
