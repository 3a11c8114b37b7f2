"""What one step along a log gives."""

from collections import Counter

import msgspec

from outrider.api import NamedEvent


class Slice(msgspec.Struct):
    """What one step along a log gave.

    Attributes:
        events, rejected, ignored: as in `outrider.api.Batch`.
        size: bytes consumed.
        progress: something was done; another step at once makes sense.
        history: all of it was written before the first start.
        caught_up: nothing that can be read is left in the file and it is the newest.
        problem: why the log cannot be read: it is not there, or is none; empty: it can.
        may_pass: the problem may well be over in a moment.
        notes: what the person on call should know.
    """

    events: list[NamedEvent] = []
    rejected: Counter[str] = msgspec.field(default_factory=Counter)
    ignored: Counter[str] = msgspec.field(default_factory=Counter)
    size: int = 0
    progress: bool = False
    history: bool = False
    caught_up: bool = False
    problem: str = ""
    may_pass: bool = False
    notes: list[str] = []
