"""Log lines for events that were set aside: at most one a minute for each reason."""

import time
from collections import Counter
from collections.abc import Callable, Iterable

import structlog

from outrider.engine.ingest.set_aside import FAULT, REASONS
from outrider.ledger import SetAsideRecord

QUIET_S = 60.0
"""Seconds after which a reason is logged again, with the number of events since."""

log = structlog.get_logger()


class SetAsideLog:
    """Logs the first event of each reason at once, then at most one line a minute.

    Args:
        clock: seconds that only ever go on.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._not_logged: Counter[str] = Counter()
        self._logged_at_s: dict[str, float] = {}

    def note(self, events: Iterable[SetAsideRecord]) -> None:
        """Log these events that were set aside, if it is time."""
        for event in events:
            self._not_logged[event.reason] += 1
            logged_at_s = self._logged_at_s.get(event.reason)
            if logged_at_s is None or self._clock() - logged_at_s >= QUIET_S:
                self._write(event)

    def _write(self, event: SetAsideRecord) -> None:
        self._logged_at_s[event.reason] = self._clock()
        tell = log.error if event.reason == FAULT else log.warning
        tell(
            "set_aside_event", adapter=event.adapter, kind=event.kind, subject=event.subject,
            reason=event.reason, why=event.detail or REASONS[event.reason],
            events=self._not_logged.pop(event.reason),
        )  # fmt: skip
