"""The event log of the pool, read to its present end."""

from collections import Counter
from collections.abc import Callable
from typing import Any, Final

from outrider.api import Batch
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.slices import Slice
from outrider_adapters.logtail.tails import Tails

_READ_BYTES: Final = 1 << 20


class EventLog:
    """Follows the event log as `logtail` does, through growth, rotation and absence.

    Args:
        settings: which log, and how.
        clock: Unix seconds now of the file system, with whose times it is compared.
    """

    def __init__(self, settings: LogtailSettings, clock: Callable[[], float]) -> None:
        self._tails = Tails(settings, clock)
        self._clock = clock

    def start(self, cursor: Any) -> None:
        """Begin at a cursor; None: at the beginning. Raises `ValueError` if it is none of ours."""
        self._tails.start(cursor)

    def close(self) -> None:
        """Close the files."""
        self._tails.close()

    def read(self) -> Batch:
        """What was written since the last time, up to a mebibyte; history apart from news.

        `seen_until_s` is None where more can be read at once, or the log is away.
        """
        now_s = self._clock()  # before the reading: what is written later may not be seen
        self._tails.look_for_files()
        parts = self._gather(history=True)
        history = any(part.progress for part in parts)
        if not history:
            parts += self._gather(history=False)
        caught_up = not history and bool(parts) and parts[-1].caught_up
        rejected: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for part in parts:
            rejected += part.rejected
            ignored += part.ignored
        notes = [*self._tails.broken_readers(), *(note for part in parts for note in part.notes)]
        return Batch(
            events=[event for part in parts for event in part.events],
            cursor=self._tails.save(),
            seen_until_s=now_s if caught_up else None,
            age_s=self._tails.age_s(),
            rejected=dict(rejected),
            ignored=dict(ignored),
            history=history,
            note="; ".join(dict.fromkeys(notes)),
        )

    def _gather(self, history: bool) -> list[Slice]:
        parts: list[Slice] = []
        while sum(part.size for part in parts) < _READ_BYTES:
            turn = self._tails.step_all(history)
            parts += turn
            if not any(part.progress for part in turn):
                break
        return parts
