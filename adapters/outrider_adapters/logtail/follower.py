"""The one loop that reads logs to their present end: what `logtail` and watchers of pools share."""

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from outrider.api import Batch, InProgress
from outrider_adapters.logtail.settings import LogtailSettings
from outrider_adapters.logtail.slices import Slice
from outrider_adapters.logtail.steps import Steps
from outrider_adapters.logtail.tails import Tails
from outrider_adapters.logtail.troubles import some_of

BATCH_BYTES: Final = 1 << 20


class LogFollower:
    """Reads logs through growth, rotation, truncation and absence, a batch at a time.

    Synchronous: whoever follows logs in an event loop calls it in a thread.

    Args:
        settings: which logs, and how.
        clock: Unix seconds now, of the file system with whose times it is compared.
        steps: make what may hang, where somebody gives up what does. What was read before a step
            that was given up comes with the next batch.

    Raises:
        ConfigurationError, PluginError: as `Readers`.
    """

    def __init__(
        self, settings: LogtailSettings, clock: Callable[[], float], steps: Steps | None = None
    ) -> None:
        self._steps = steps or Steps()
        self._tails = Tails(settings, clock, self._steps)
        self._clock = clock
        self._parts: list[Slice] = []  # read, and not in a batch yet
        self._of_history = False

    @property
    def paths(self) -> list[Path]:
        """The live logs followed now."""
        return self._tails.paths

    @property
    def state_words(self) -> Mapping[str, str]:
        """What the logs' batch system calls the states of jobs, once a log was looked at."""
        return self._tails.state_words

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
        self._parts = []

    def read(self) -> tuple[Batch, bool]:
        """What was written since the last time, up to a mebibyte; history apart from news.

        Returns:
            the batch, and whether there was anything to do. `seen_until_s` is None where more can
            be read at once, or a log is away.

        Raises:
            PluginError: a reader that a log needs cannot be loaded.
        """
        if self._parts:
            return self._batch(None), True
        now_s = self._clock()  # before the reading: what is written later may not be seen
        self._tails.look_for_files()
        self._gather(history=True)
        if any(part.progress for part in self._parts):
            return self._batch(None), True
        caught_up = not self._parts
        self._gather(history=False)
        last_round = self._parts[-len(self._tails.paths) :]
        caught_up = caught_up and all(part.caught_up for part in last_round)
        progress = any(part.progress for part in self._parts)
        return self._batch(now_s if caught_up else None), progress

    def _gather(self, history: bool) -> None:
        """Step along all logs in turn until a batch is full or nothing is left to read."""
        self._of_history = history
        size = 0
        while size < BATCH_BYTES:
            progress = False
            for part in self._tails.step_all(history):
                self._parts.append(part)
                size += part.size
                progress = progress or part.progress
            if not progress:
                break

    def _batch(self, seen_until_s: float | None) -> Batch:
        parts, self._parts = self._parts, []
        rejected: Counter[str] = Counter()
        ignored: Counter[str] = Counter()
        for part in parts:
            if part.rejected or part.ignored:
                rejected += part.rejected
                ignored += part.ignored
        tails, groups = self._tails, self._tails.groups.values()
        problem = tails.troubles.told(groups)
        notes = [*tails.broken_readers(), *(note for part in parts for note in part.notes)]
        return Batch(
            events=[event for part in parts for event in part.events],
            cursor=tails.save(),
            seen_until_s=seen_until_s,
            age_s=tails.troubles.age_s(groups),
            rejected=dict(rejected),
            ignored=dict(ignored),
            note=some_of([*notes, *filter(None, [problem])]),
            problem=problem,
            written_s=tails.written_s(),
            history=self._of_history and any(part.progress for part in parts),
        )
