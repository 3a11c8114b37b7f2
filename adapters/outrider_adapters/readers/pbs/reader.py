"""Reader of PBS accounting files: one record per line, in the order of writing."""

import re
from collections import Counter
from typing import Any, ClassVar, Final

from outrider.api import LogReader, ReaderOptions, Reading
from outrider_adapters.readers.pbs.exits import STATE_WORDS
from outrider_adapters.readers.pbs.records import Records

MAX_RECORD_BYTES: Final = 1 << 20
"""Limit of a record; a longer line is rejected, with or without a line end."""

_RECORD = re.compile(
    rb"^(?:\d{8}:)?\d\d/\d\d/\d{4} \d\d:\d\d:\d\d[^;\n]{0,16};[A-Za-z];[^;\s]", re.MULTILINE
)


class PBSAccountingReader(LogReader):
    """Reader of accounting files of OpenPBS, PBS Pro and Torque.

    The files are ``server_priv/accounting/YYYYMMDD``. Times at the front of records are local time
    of `ReaderOptions.timezone`, and UTC where that
    is None; the Unix seconds inside of records (``ctime``, ``start``, ``end``) are preferred.

    A request to delete a job waits a minute of the file's own time for the end of a run. Until
    then the last record stays unconsumed, so that a quiet file is read once more, finally.
    """

    name: ClassVar[str] = "pbs"
    description: ClassVar[str] = "PBS accounting records: OpenPBS, PBS Pro, Torque"
    api_version = 1
    in_order: ClassVar[bool] = False
    state_words = STATE_WORDS

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._records = Records(options)

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a line in the head of a file begins as an accounting record does."""
        return _RECORD.search(head) is not None

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole records at the front of the data (see `outrider.api.LogReader.read`)."""
        reading = Reading([], 0, 0, 0, Counter(), Counter())
        end = data.rfind(b"\n") + 1
        records = self._records
        for line in data[:end].split(b"\n")[:-1]:
            after = reading.consumed + len(line) + 1
            if after == end and not final and records.waits_after(line):
                break
            reading.consumed = after
            reading.lines += 1
            if len(line) > MAX_RECORD_BYTES:
                reading.records += 1
                reading.rejected["too_long"] = reading.rejected.get("too_long", 0) + 1
                continue
            record = line.decode("utf-8", "replace").strip()
            if record:
                reading.records += 1
                records.read(record, reading)
        if final:
            records.finish(reading)
        if not end and len(data) > MAX_RECORD_BYTES:
            reading.records, reading.consumed = 1, len(data)
            reading.rejected["garbage"] = 1
        return reading

    def save(self) -> Any:
        """Return the pending and recent requests to delete, and the last time."""
        records = self._records
        return {"deletions": records.deletions.save(), "last_s": records.stamps.last_s}

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned, also in versions that saved requests alone."""
        if set(saved) == {"deletions", "last_s"}:
            self._records.stamps.last_s = saved["last_s"]
            saved = saved["deletions"]
        self._records.deletions.restore(saved)
