"""The events of a journal in the order in which the daemon's own event merger gives them."""

from collections.abc import Callable, Iterator
from math import inf

from outrider.engine import EventMerger
from outrider.journal import Journal
from outrider.journal.standing_machines import STANDING_KEY, standing_on_record
from outrider.model.events import TICK, Event
from outrider.model.machines import MachineSpec
from outrider.replay.ingestion import inferred_machine


class JournalEvents:
    """Iterate over it once.

    Args:
        journal: to read.
        describe: what is known of a machine that the journal does not declare.

    Attributes:
        merger: through which the events go; it counts repairs and what is set aside.
        seen_s: up to when every source had been seen; -inf before the first watermark.
    """

    def __init__(
        self, journal: Journal, describe: Callable[[str], MachineSpec] = inferred_machine
    ) -> None:
        self.merger = EventMerger((), describe)
        self.seen_s = -inf
        self._journal = journal

    def __iter__(self) -> Iterator[Event]:
        """The events. Raises `LedgerError` where a row cannot be read."""
        is_first = True
        for _, label, event in self._journal.inputs_after(0):
            if is_first:
                self.merger.arrive(STANDING_KEY, standing_on_record(self._journal, event[0]))
                is_first = False
            if event[1] == TICK:
                self.seen_s = max(self.seen_s, event[0])
                yield from self.merger.advance(self.seen_s)
            else:
                self.merger.arrive(label, (event,))
        yield from self.merger.advance(inf)
