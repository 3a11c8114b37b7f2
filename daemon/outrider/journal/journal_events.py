"""The one reader of a journal's events: in the order in which the daemon's own merger gave them.

Machines that stood at the daemon's first look come first, for no input tells of them. A watermark
never goes back. What still waits for one where the record ends is given then, with ticks up to the
last moment of which the record tells.
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
"""Rows from the end in which the last watermark is looked for; decisions are rows of it, too."""


class JournalEvents:
    """Goes through a journal, and on from where it stopped while the daemon writes it.

    Args:
        describe: what is known of a machine that the journal does not declare.

    Attributes:
        merger: through which the events go; it counts repairs and what is set aside.
        seq: number of the last input that was read; 0: none yet.
        seen_s: up to when every source had been seen; -inf before the first watermark.
        told_s: time of the latest event that an input told of; -inf before the first.
    """

    def __init__(self, describe: Callable[[str], MachineSpec] = inferred_machine) -> None:
        self.merger = EventMerger((), describe)
        self.seq = 0
        self.seen_s = -inf
        self.told_s = -inf
        self._has_begun = False

    def read(
        self, journal: JournalReading, until_seq: float = inf
    ) -> Iterator[tuple[float, Iterator[Event]]]:
        """Read on, to the end of the journal or up to an input.

        Yields:
            At each watermark its time, and the events up to it; they are to be used up before the
            next one, for ticks depend on what was asked for meanwhile.

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
                self.told_s = max(self.told_s, event[0])
                self.merger.arrive(label, (event,))

    def go_on_after(self, seq: int) -> None:
        """Something else, a snapshot, told what stood when the journal was at this input."""
        self.seq, self._has_begun = max(self.seq, seq), True

    def rest(self) -> Iterator[Event]:
        """What waits for a watermark, where the record has ended."""
        yield from self.merger.finish(max(self.seen_s, self.told_s))

    def all_of(self, journal: JournalReading) -> Iterator[Event]:
        """Every event, to the end of the record. Raises `LedgerError` as `read` does."""
        for _, events in self.read(journal):
            yield from events
        yield from self.rest()


def last_moment_s(journal: JournalReading) -> float | None:
    """The last moment that a journal tells of; None: it tells of none.

    It is the last watermark, for single events may bear a wrong date. Raises `LedgerError`.
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
# What stands at the first look of a source that starts *now* is history, and no input: without
# this, who reads the journal would know machines from the jobs that run on them alone.

INITIAL_KEY: Final = "standing_machines"
"""Name of the meta entry."""


def initial_meta(events: Iterable[NamedEvent]) -> dict[str, Any]:
    """The meta entry that keeps these events, of machines and of who may use them; {}: none."""
    kept = [[*event[:3], encode_extra(event[1], event[3])] for event in events]
    return {INITIAL_KEY: kept} if kept else {}


def initial_on_record(journal: JournalReading, time_s: float) -> list[NamedEvent]:
    """What was kept, as if it had happened at a time; nothing where the journal is older.

    Args:
        journal: to read.
        time_s: of its first input, Unix seconds.

    Raises:
        LedgerError: it cannot be read, or holds something else under this name.
    """
    try:
        kept = msgspec.convert(
            journal.meta(INITIAL_KEY, []), list[tuple[float, int, str, str | None]]
        )
        return [(time_s, kind, name, decode_extra(kind, extra)) for _, kind, name, extra in kept]
    except (LookupError, ValueError, msgspec.MsgspecError) as error:
        raise LedgerError(
            f"{journal.path}: {INITIAL_KEY} is not what a daemon records: {error}"
        ) from error
