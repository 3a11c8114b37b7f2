"""A line in the log for events that were set aside, and not one for each of thousands."""

import time
from collections import Counter
from collections.abc import Callable, Iterable

import structlog

from outrider.engine.ingest.set_aside import FAULT, REASONS
from outrider.ledger import SetAsideRecord

QUIET_S = 60.0
"""A reason is told again after this, with how many there were meanwhile."""

log = structlog.get_logger()


class SetAsideLog:
    """Tells of the first event of each reason at once, then at most one line a minute.

    Args:
        clock: seconds that only ever go on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._untold: Counter[str] = Counter()
        self._told_at_s: dict[str, float] = {}

    def note(self, events: Iterable[SetAsideRecord]) -> None:
        """These were set aside."""
        for event in events:
            self._untold[event.reason] += 1
            told_at_s = self._told_at_s.get(event.reason)
            if told_at_s is None or self._clock() - told_at_s >= QUIET_S:
                self._tell(event)

    def _tell(self, event: SetAsideRecord) -> None:
        self._told_at_s[event.reason] = self._clock()
        tell = log.error if event.reason == FAULT else log.warning
        tell(
            "set_aside_event", adapter=event.adapter, kind=event.kind, subject=event.subject,
            reason=event.reason, why=event.detail or REASONS[event.reason],
            events=self._untold.pop(event.reason),
        )  # fmt: skip
