"""How far the start of the daemon has come: told by the thread that starts it, read by the loop."""

import time
from collections.abc import Iterable, Iterator
from typing import Final, TypeAlias

from outrider.model.errors import OutriderError
from outrider.model.events import NamedEvent

Input: TypeAlias = tuple[int, str, NamedEvent]
"""An input of the journal: its sequence number, its adapter, the event."""

_LOOK_EVERY: Final = 64
"""Inputs between two looks at the clock and at `stop`."""


class StartStoppedError(OutriderError):
    """The daemon was told to stop while it was starting; nothing is wrong."""


class StartProgress:
    """What is done at the start, and how much of it.

    One thread writes, others read: each attribute is replaced whole.

    Attributes:
        doing: what is done now, in a few words.
        fed: inputs of the journal that were fed again.
        ratio: share of the journal that has been read, 0 to 1; 1 once nothing is left.
        moved_at: `time.monotonic` of the last sign that the start goes on.
    """

    def __init__(self) -> None:
        self.doing = "opening the journal"
        self.fed = 0
        self.ratio = 0.0
        self.moved_at = self.began_at = time.monotonic()
        self._stopped = False

    def begin(self, doing: str) -> None:
        """Something else is done from now on.

        Raises:
            StartStoppedError: the daemon is to stop.
        """
        self.doing = doing
        self.move()

    def move(self) -> None:
        """The start goes on. Raises `StartStoppedError` if it should not."""
        self.moved_at = time.monotonic()
        if self._stopped:
            raise StartStoppedError("told to stop while starting")

    def stop(self) -> None:
        """End the start at its next sign of life."""
        self._stopped = True

    def watch(self, rows: Iterable[Input], first_seq: int, last_seq: int) -> Iterator[Input]:
        """The same rows, counted.

        Args:
            rows: inputs in order.
            first_seq: they stand after this sequence number.
            last_seq: the journal ends at this one.

        Raises:
            StartStoppedError: the daemon is to stop.
        """
        span = max(1, last_seq - first_seq)
        self.fed, self.ratio = 0, 0.0
        for n, row in enumerate(rows, 1):
            if n % _LOOK_EVERY == 0:
                self.fed, self.ratio = n, (row[0] - first_seq) / span
                self.move()
            yield row
        self.ratio = 1.0

    @property
    def sentence(self) -> str:
        """For the page, the probes and systemd."""
        told = f"still starting: {self.doing}"
        if self.fed:
            told += f", {self.fed:,} inputs so far ({self.ratio:.0%} of the journal)"
        return told
