"""Progress of a sweep: as of all runs, and every failure told at once."""

from collections.abc import Callable

from outrider_lab.running.run_all import Progress, RunEnd


class SweepProgress:
    """Tells of failures as they come, for what fails is tried again.

    Args:
        progress: is told of all else.
        warn: takes a failure, in words.
    """

    def __init__(self, progress: Progress, warn: Callable[[str], None]) -> None:
        self._progress = progress
        self._warn = warn

    def begin(self, runs: int, kept: int) -> None:
        """See `Progress`."""
        self._progress.begin(runs, kept)

    def ended(self, end: RunEnd, is_last_attempt: bool) -> None:
        """See `Progress`."""
        if end.error is not None:
            self._warn(f"{end.spec}: failed, attempt {end.attempts}: {end.error}")
        self._progress.ended(end, is_last_attempt)
