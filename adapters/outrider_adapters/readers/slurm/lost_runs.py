"""Jobs whose run was lost, and of which nobody said whether Slurm queued them again."""

from collections import OrderedDict
from typing import Any, Final

from outrider.api import NamedEvent, events

MOST_OPEN: Final = 10_000
"""Of more than these, the job that waits the longest is taken to be gone."""


class LostRuns:
    """Remembers them until a later record of the job says that it went on.

    Those of which no more is heard until the end of the file are taken to have left with their
    run. In a log that goes on growing they stay in the queue.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def lost(self, job: str, end_s: float, reason: str) -> list[NamedEvent]:
        """A run was lost.

        Returns:
            the removal of another job, if there are too many now.
        """
        known = self._open.get(job)
        if known is None or end_s > known[0]:  # else it is a run that was told of before
            self._open[job] = end_s, reason
        if len(self._open) <= MOST_OPEN:
            return []
        other, (other_end_s, why) = self._open.popitem(last=False)
        return [(other_end_s, events.REMOVED, other, why)]

    def heard_of(self, job: str, end_s: float | None) -> None:
        """A record of the job came; one of a later end, or of none yet, says that it went on."""
        lost = self._open.get(job)
        if lost is not None and (end_s is None or end_s > lost[0]):
            del self._open[job]

    def settle(self) -> list[NamedEvent]:
        """Nothing more will come: the removals of all that are left."""
        removals: list[NamedEvent] = [
            (end_s, events.REMOVED, job, reason) for job, (end_s, reason) in self._open.items()
        ]
        self._open.clear()
        return removals

    def save(self) -> Any:
        """What is remembered, as JSON types."""
        return [[job, end_s, reason] for job, (end_s, reason) in self._open.items()]

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._open = OrderedDict((job, (end_s, reason)) for job, end_s, reason in saved)
