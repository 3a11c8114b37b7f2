"""Base of the readers of Slurm's records: one per line, written when a job has ended."""

from collections import Counter
from typing import Any, ClassVar, Final

from outrider.api import LogReader, NamedEvent, ReaderOptions, Reading
from outrider_adapters.readers.slurm.record_events import STATE_WORDS, Lives, UnreadableRecordError

MAX_LINE_BYTES: Final = 1 << 20
"""Limit of a line; a longer one is rejected, with or without a line end."""

MAX_BETWEEN: Final = 64
"""Number of lines after half a record that are searched for its other half."""

FORGED: Final = "in_a_broken_record"
"""Reason of lines within a record that was cut by a line end in a name."""


class LineReader(LogReader):
    """Base of the readers: splits lines and counts records.

    Subclasses implement `read_line`; `lives` converts records into events. A final reading of
    a file that ends with a whole line settles what is open (see `LostRuns`); after half a line
    more is expected.
    """

    in_order: ClassVar[bool] = False
    state_words = STATE_WORDS

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self.lives = Lives(options)
        self._cluster = options.system or options.log_name
        self.ignored: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._searched = 0, -1  # number of searched lines, and the index of a rest among them

    def name_of(self, job: str, cluster: str = "") -> str:
        """Return the name of a job: ``CLUSTER:ID``, since every cluster counts from 1.

        Args:
            job: its id, with that of its task: ``123``, ``123_4``, ``123+0``.
            cluster: as in the record; if empty, `ReaderOptions.system` is used, else
                the log's name.
        """
        cluster = cluster or self._cluster
        return f"{cluster}:{job}" if cluster else job

    def read_line(self, line: str) -> list[NamedEvent]:
        """Return the events of a line that is not blank; none if it was counted as ignored.

        Raises:
            UnreadableRecordError: the line cannot be parsed.
        """
        raise NotImplementedError

    def is_cut(self, line: str) -> bool:
        """Return whether an invalid line begins a record without ending it."""
        return False

    def is_rest(self, line: str) -> bool:
        """Return whether a line ends a record without beginning it."""
        return False

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole lines at the front of the data (see `outrider.api.LogReader.read`).

        A name with a line end cuts its record in two. The lines between the halves were written by
        a user, even if they look like records: all of them are rejected (`FORGED`).
        """
        end = data.rfind(b"\n") + 1
        reading = Reading([], end, 0, 0, {}, {})
        rejected: Counter[str] = Counter()
        lines = data[:end].split(b"\n")[:-1]
        self._searched = 0, -1
        number = 0
        while number < len(lines):
            line = _text(lines[number])
            number += 1
            if not line or line.isspace():
                continue
            reading.records += 1
            try:
                if len(line) > MAX_LINE_BYTES:
                    raise UnreadableRecordError("too_long")
                reading.events += self.read_line(line)
            except UnreadableRecordError as reason:
                between = self._between(lines, number) if self.is_cut(line) else 0
                if between is None and not final:  # the rest of it is not available yet
                    reading.records -= 1
                    number -= 1
                    break
                rejected[str(reason)] += 1
                rejected[FORGED] += between or 0
                reading.records += between or 0
                number += between or 0
        reading.lines = number
        if number < len(lines):
            reading.consumed = sum(map(len, lines[:number])) + number
        elif len(data) - end > MAX_LINE_BYTES:
            reading.records += 1
            rejected["garbage"] += 1
            reading.consumed = len(data)
        if final and reading.consumed == len(data):
            reading.events += self.lives.lost_runs.settle()
        reading.ignored, reading.rejected = dict(self.ignored), dict(+rejected)
        reading.warnings = self.warnings
        self.ignored, self.warnings = Counter(), []
        return reading

    def _between(self, lines: list[bytes], start: int) -> int | None:
        """Return how many of the next lines belong to a record that was cut before them.

        0 if none of the next `MAX_BETWEEN` lines is its rest; None if not all of these are
        available and none of the available ones is. No line is checked twice.
        """
        stop = min(start + MAX_BETWEEN, len(lines))
        searched, rest = self._searched
        if rest < start:
            searched = max(searched, start)
            while searched < stop and rest < start:
                rest = searched if self.is_rest(_text(lines[searched])) else rest
                searched += 1
            self._searched = searched, rest
        if start <= rest < stop:
            return rest - start + 1
        return 0 if stop - start == MAX_BETWEEN else None

    def save(self) -> Any:
        """Return the jobs whose next record decides whether they continued."""
        return {"lost_runs": self.lives.lost_runs.save()}

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned."""
        self.lives.lost_runs.restore(saved["lost_runs"])


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\r")
