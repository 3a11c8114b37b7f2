"""The one loop that reads logs to their present end: what `logtail` and watchers of pools share."""

from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from outrider.api import Batch, InProgress
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.slices import Slice
from outrider_adapters.logtail.tails import Tails

BATCH_BYTES: Final = 1 << 20


class LogFollower:
    """Reads logs through growth, rotation, truncation and absence, a batch at a time.

    Synchronous: whoever follows logs in an event loop calls it in a thread.

    Args:
        settings: which logs, and how.
        clock: Unix seconds now, of the file system with whose times it is compared.

    Raises:
        ConfigurationError, PluginError: as `Readers`.
    """

    def __init__(self, settings: LogtailSettings, clock: Callable[[], float]) -> None:
        self._tails = Tails(settings, clock)
        self._clock = clock

    @property
    def paths(self) -> list[Path]:
        """The live logs followed now."""
        return self._tails.paths

    def start(self, cursor: Any, in_progress: InProgress | None = None) -> None:
        """Begin at a cursor; None: at the beginning.

        Args:
            cursor: of a batch.
            in_progress: of the adapter (see `outrider.api.Adapter`).

        Raises:
            ValueError: the cursor is none of ours.
        """
        self._tails.start(cursor, in_progress)

    def close(self) -> None:
        """Close the files."""
        self._tails.close()

    def read(self) -> tuple[Batch, bool]:
        """What was written since the last time, up to a mebibyte; history apart from news.

        Returns:
            the batch, and whether there was anything to do. `seen_until_s` is None where more can
            be read at once, or a log is away.

        Raises:
            PluginError: a reader that a log needs cannot be loaded.
        """
        now_s = self._clock()  # before the reading: what is written later may not be seen
        self._tails.look_for_files()
        old = self._gather(history=True)
        if any(part.progress for part in old):
            return self._batch(old, None, history=True), True
        new = self._gather(history=False)
        last_round = new[-len(self._tails.paths) :]
        caught_up = not old and all(part.caught_up for part in last_round)
        progress = any(part.progress for part in new)
        return self._batch(old + new, now_s if caught_up else None, history=False), progress

    def _gather(self, history: bool) -> list[Slice]:
        """Step along all logs in turn until a batch is full or nothing is left to read."""
        parts: list[Slice] = []
        size = 0
        while size < BATCH_BYTES:
            turn = self._tails.step_all(history)
            parts += turn
            size += sum(part.size for part in turn)
            if not any(part.progress for part in turn):
                break
        return parts

    def _batch(self, parts: list[Slice], seen_until_s: float | None, history: bool) -> Batch:
        rejected: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for part in parts:
            rejected += part.rejected
            ignored += part.ignored
        notes = [*self._tails.broken_readers(), *(note for part in parts for note in part.notes)]
        return Batch(
            events=[event for part in parts for event in part.events],
            cursor=self._tails.save(),
            seen_until_s=seen_until_s,
            age_s=self._tails.age_s(),
            rejected=dict(rejected),
            ignored=dict(ignored),
            note="; ".join(dict.fromkeys(notes)),
            history=history,
        )
