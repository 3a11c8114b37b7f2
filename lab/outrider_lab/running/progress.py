"""Progress of many runs: runs done, failed, and the time that is left."""

import time
from collections.abc import Callable
from typing import Final

from outrider.model.quantities import duration
from outrider_lab.running.run_all import RunEnd

LINE_EVERY_S: Final = 30.0
"""Seconds between two lines of a log and before the first, so that short commands log nothing."""


class Count:
    """Counter of runs as they end, independent of any display.

    Args:
        clock: seconds that only go forward.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.runs = self.kept = self.done = self.failed = 0
        self._clock = clock
        self._began_s = clock()

    def begin(self, runs: int, kept: int) -> None:
        """Begin with a number of runs, some of which were known before."""
        self.runs, self.kept, self.done = runs, kept, kept
        self._began_s = self._clock()

    def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
        """Count the end of a run; one that is tried again is not over yet."""
        if is_last_attempt:
            self.done += 1
            self.failed += end.error is not None

    @property
    def left_s(self) -> float | None:
        """Seconds until the last run ends, at the pace of those that ran; None: not known yet."""
        ran = self.done - self.kept
        if not ran:
            return None
        return (self._clock() - self._began_s) / ran * (self.runs - self.done)

    def words(self) -> str:
        """Return words like ``12 of 40 runs done (3 known before), 1 failed, 4.2 min left``."""
        known = f" ({self.kept} known before)" if self.kept else ""
        failed = f", {self.failed} failed" if self.failed else ""
        left = "" if self.left_s is None else f", {duration(self.left_s)} left"
        return f"{self.done} of {self.runs} runs done{known}{failed}{left}"


class LogProgress(Count):
    """Lines for a log, at a bounded rate.

    Args:
        label: what runs, in words.
        write: takes a line.
        every_s: at least so long between two lines.
        clock: seconds that only go forward.
    """

    def __init__(
        self,
        label: str,
        write: Callable[[str], None],
        every_s: float = LINE_EVERY_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        super().__init__(clock)
        self._label = label
        self._write = write
        self._every_s = every_s
        self._written_s = clock()

    def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
        """Count the end of a run, and periodically write a line."""
        super().ended(end, is_last_attempt)
        now_s = self._clock()
        if now_s - self._written_s >= self._every_s:
            self._written_s = now_s
            self._write(f"{self._label}: {self.words()}")


class BarProgress(Count):
    """Progress bar and the same words, for a terminal.

    Args:
        show: takes the ratio that is done, 0 to 1, and the words.
    """

    def __init__(self, show: Callable[[float, str], None]) -> None:
        super().__init__()
        self._show = show

    def begin(self, runs: int, kept: int) -> None:
        """Begin counting, and show it."""
        super().begin(runs, kept)
        self._show(self.done / max(runs, 1), self.words())

    def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
        """Count the end of a run, and show it."""
        super().ended(end, is_last_attempt)
        self._show(self.done / max(self.runs, 1), self.words())
