"""Machines that a daemon found at its first look, in the journal's meta table.

What stands at the first look of a source that starts *now* is history, and no input: without this,
who reads the journal would know machines from the jobs that run on them alone.
"""

from collections.abc import Iterable
from typing import Any, Final

import msgspec

from outrider.journal.extras import decode_extra, encode_extra
from outrider.journal.reading import JournalReading
from outrider.model.errors import LedgerError
from outrider.model.events import NamedEvent

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
