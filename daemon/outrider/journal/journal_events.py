"""Reader of a journal's events, in the order in which the daemon's own merger returned them.

Machines that existed at the daemon's first look come first, for no input contains them. A watermark
never goes back. Events that still wait for one at the end of the record are returned then, with
ticks up to the last recorded moment.
"""

from collections.abc import Callable, Iterable, Iterator
from math import inf
from typing import Any, Final

import msgspec

from outrider.engine import EventMerger
from outrider.engine.ingest.machine_registry import inferred_machine
from outrider.journal.reading import JournalReading
from outrider.journal.records import decode_extra, encode_extra
from outrider.model.errors import LedgerError
from outrider.model.events import TICK, Event, NamedEvent
from outrider.model.machines import MachineSpec

_FIRST_LOOK: Final = 4096
"""Rows from the end in which the last watermark is searched first; decisions count, too."""


class JournalEvents:
    """Incremental reader of a journal's events, also while the daemon writes the journal.

    Args:
        describe: the specification of a machine that the journal does not declare.

    Attributes:
        merger: through which the events pass; it counts repairs and rejected events.
        seq: number of the last input that was read; 0: none yet.
        seen_s: up to when every source had been seen; -inf before the first watermark.
        latest_event_s: time of the latest event in an input; -inf before the first.
    """

    def __init__(self, describe: Callable[[str], MachineSpec] = inferred_machine) -> None:
        self.merger = EventMerger((), describe)
        self.seq = 0
        self.seen_s = -inf
        self.latest_event_s = -inf
        self._has_begun = False

    def read(
        self, journal: JournalReading, until_seq: float = inf
    ) -> Iterator[tuple[float, Iterator[Event]]]:
        """Read to the end of the journal or up to an input.

        Yields:
            At each watermark its time, and the events up to it. They must be consumed before the
            next one, for ticks depend on what was requested in between.

        Raises:
            LedgerError: a row cannot be read.
        """
        for seq, label, event in journal.inputs_after(self.seq):
            if seq > until_seq:
                return
            if not self._has_begun:
                self.merger.arrive(INITIAL_KEY, initial_on_record(journal, event[0]))
                self._has_begun = True
            self.seq = seq
            if event[1] == TICK:
                self.seen_s = max(self.seen_s, event[0])
                yield self.seen_s, self.merger.advance(self.seen_s)
            else:
                self.latest_event_s = max(self.latest_event_s, event[0])
                self.merger.arrive(label, (event,))

    def resume_after(self, seq: int) -> None:
        """Skip the inputs up to a number, whose effects a snapshot has already supplied."""
        self.seq, self._has_begun = max(self.seq, seq), True

    def rest(self) -> Iterator[Event]:
        """Return the events that wait for a watermark at the end of the record."""
        yield from self.merger.finish(max(self.seen_s, self.latest_event_s))

    def all_of(self, journal: JournalReading) -> Iterator[Event]:
        """Yield every event, to the end of the record. Raises `LedgerError` as `read` does."""
        for _, events in self.read(journal):
            yield from events
        yield from self.rest()


def last_moment_s(journal: JournalReading) -> float | None:
    """Return the last moment recorded in a journal; None if it has none.

    It is the last watermark, for single events may have a wrong date. Raises `LedgerError`.
    """
    last, rows = journal.last_seq(), _FIRST_LOOK
    while True:
        after = max(0, last - rows)
        events = [event for _, _, event in journal.inputs_after(after)]
        ticks = [event[0] for event in events if event[1] == TICK]
        if ticks:
            return max(ticks)
        if after == 0:
            return max((event[0] for event in events), default=None)
        rows *= 16


# -- initial machines ------------------------------------------------------------------------------
# Machines that a daemon found at its first look, in the journal's meta table.
#
# The state at the first look of a source that starts *now* is history, and not an input. Without
# this, a reader of the journal would know machines only from the jobs that run on them.

INITIAL_KEY: Final = "standing_machines"
"""Name of the meta entry with the initial machines."""


def initial_meta(events: Iterable[NamedEvent]) -> dict[str, Any]:
    """Return the meta entry that stores these machine events; empty if there are none."""
    kept = [[*event[:3], encode_extra(event[1], event[3])] for event in events]
    return {INITIAL_KEY: kept} if kept else {}


def initial_on_record(journal: JournalReading, time_s: float) -> list[NamedEvent]:
    """Return the stored events with a given time; none where the journal is older.

    Args:
        journal: the journal to read.
        time_s: of its first input, Unix seconds.

    Raises:
        LedgerError: it cannot be read, or contains something else under this name.
    """
    try:
        kept = msgspec.convert(
            journal.meta(INITIAL_KEY, []), list[tuple[float, int, str, str | None]]
        )
        return [(time_s, kind, name, decode_extra(kind, extra)) for _, kind, name, extra in kept]
    except (LookupError, ValueError, msgspec.MsgspecError) as error:
        raise LedgerError(
            f"{journal.path}: {INITIAL_KEY} is not as a daemon writes it: {error}"
        ) from error
