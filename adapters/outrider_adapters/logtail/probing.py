"""Trying record by record what the process before died in, so that one record is to blame."""

import os
from pathlib import Path
from typing import Final

from outrider.api import LogReader
from outrider_adapters.logtail.identity import OpenFile
from outrider_adapters.logtail.suspects import Suspects

_MOST_CUTS: Final = 4_096
"""In one suspect: each is noted in a file before it is tried."""
_LONG_BYTES: Final = 4_096
_PART: Final = 8
"""A record that is longer grows by this part, and not by a line: or it would cost the square."""
_FINER: Final = 64
"""Pieces of that part that are tried apart once it was deadly: what stands behind the record in the
same piece, some hundred bytes, is lost with it."""


def probe(suspects: Suspects, path: Path, file: OpenFile, reader: LogReader, end: int) -> None:
    """Read the suspect of a file, if it has one ahead, with another reader and for nothing.

    What is read grows from the beginning of a record, so that all of it costs some times what
    reading it once does.

    Args:
        suspects: knows what the process died in, and notes what is tried.
        path: of the log.
        file: stands where the reader does.
        reader: of the log; it is asked for its state only.
        end: of what is to be read now.
    """
    suspect = suspects.suspect_ahead(path, file.place)
    if suspect is None:
        return
    start, stop = max(suspect.start, file.place.offset), min(suspect.end, end)
    if start >= stop:
        return
    data = os.pread(file.descriptor, stop - start, start)
    scratch = type(reader)(reader.options)
    scratch.restore(reader.save())
    least = max(1, len(data) // _MOST_CUTS)
    if suspect.harmless > start:
        least = max(1, (stop - suspect.harmless) // _FINER)
    record, cut = 0, max(0, suspect.harmless - start)
    while cut < len(data):
        harmless, grown = cut, cut - record
        step = max(least, grown // _PART if grown > _LONG_BYTES and not suspect.harmless else 1)
        cut = data.find(b"\n", cut + step - 1) + 1 or len(data)
        piece = data[record:cut]
        with suspects.trying(path, file.place, start + record, piece, start + harmless):
            # a final reading keeps nothing back: what it leaves is the beginning of a record
            record += scratch.read(piece, final=True).consumed
        suspects.survived(start + record)
    suspects.survived(stop)
