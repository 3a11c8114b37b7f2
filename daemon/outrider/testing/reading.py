"""Feeding a log reader as `logtail` and ``outrider ingest`` do, and adding up what it told."""

from collections import Counter
from collections.abc import Iterable
from typing import Any

import msgspec

from outrider.api.reader import LogReader, ReaderOptions, Reading
from outrider.model.events import NamedEvent
from outrider.testing.conformance import NotConforming, expect


class Told:
    """All that a reader told of a log.

    Attributes:
        events: in the order in which they were told.
        records, lines, consumed: summed up.
        ignored, rejected: summed up, by kind and reason.
    """

    def __init__(self) -> None:
        self.events: list[NamedEvent] = []
        self.records = self.lines = self.consumed = 0
        self.ignored: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()

    def add(self, reading: Reading, fed_n: int, where: str) -> None:
        """Add a reading of so many bytes. Raises `NotConforming` if it cannot be true."""
        expect(
            0 <= reading.consumed <= fed_n,
            f"{where}: consumed {reading.consumed} of {fed_n} bytes",
        )
        self.events += reading.events
        self.records += reading.records
        self.lines += reading.lines
        self.consumed += reading.consumed
        self.ignored.update(reading.ignored)
        self.rejected.update(reading.rejected)

    def sums(self) -> dict[str, Any]:
        """Everything but the events."""
        return {
            "records": self.records,
            "lines": self.lines,
            "consumed": self.consumed,
            "ignored": dict(+self.ignored),
            "rejected": dict(+self.rejected),
        }


def read_whole(kind: type[LogReader], options: ReaderOptions, log: bytes) -> Told:
    """What a new reader tells of a log that it is fed at once, as a file that is complete."""
    return read_pieces(kind, options, log, ())


def read_pieces(
    kind: type[LogReader],
    options: ReaderOptions,
    log: bytes,
    cuts: Iterable[int],
    restart: bool = False,
) -> Told:
    """What a reader tells of a log that grows, ends at each cut for a while, and is then complete.

    Args:
        kind: the reader.
        options: its options.
        log: all of it.
        cuts: how many bytes there are at each look, ascending.
        restart: a new reader goes on from what the last one saved, after each look.
    """
    told = Told()
    reader = kind(options)
    for end in (*cuts, None):
        data = log[told.consumed : end]
        where = f"fed bytes {told.consumed} to {len(log) if end is None else end}"
        told.add(reader.read(data, final=end is None), len(data), where)
        if restart:
            saved = plain(reader.save())
            reader = kind(options)
            reader.restore(saved)
    return told


def boundaries(kind: type[LogReader], options: ReaderOptions, log: bytes) -> list[int]:
    """Where records end: what a reader consumes as the log grows line by line."""
    ends, consumed, reader, at = [0], 0, kind(options), 0
    while (at := log.find(b"\n", at) + 1) > 0:
        consumed += reader.read(log[consumed:at]).consumed
        if consumed == at:
            ends.append(at)
    return ends


def plain(saved: Any) -> Any:
    """What `save` gave, after the journal has kept it. Raises `NotConforming`."""
    try:
        return msgspec.json.decode(msgspec.json.encode(saved))
    except (TypeError, ValueError, msgspec.MsgspecError) as error:
        raise NotConforming(f"save() gave {saved!r}, which is no plain data: {error}") from error


def difference(got: list[NamedEvent], wanted: list[NamedEvent]) -> str:
    """Where two lists of events differ first, in words."""
    for number, (one, other) in enumerate(zip(got, wanted, strict=False), 1):
        if one != other:
            return f"event {number} is {one!r} instead of {other!r}"
    return f"{len(got)} events came instead of {len(wanted)}"
