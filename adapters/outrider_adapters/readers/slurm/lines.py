"""What both of Slurm's records have in common: one a line, told when a job has ended."""

from collections import Counter
from typing import Any, ClassVar, Final

from outrider.api import LogReader, NamedEvent, ReaderOptions, Reading
from outrider_adapters.readers.slurm.record_events import STATE_WORDS, Lives, UnreadableRecordError

MOST_LINE_BYTES: Final = 1 << 20
"""What is longer than this is no record, whether it has a line end or not."""

MOST_BETWEEN: Final = 64
"""Lines after half a record among which its other half is looked for."""

FORGED: Final = "in_a_broken_record"
"""The reason of lines between the halves of a record that a line end in a name has cut."""


class LineReader(LogReader):
    """Base of the readers: cuts lines, counts records.

    Subclasses say in `read_line` what a line is; `lives` tells what happened. A final reading of
    a file that ends with a whole line settles what is open (see `LostRuns`); half a line says
    that more will come.
    """

    in_order: ClassVar[bool] = False
    state_words = STATE_WORDS

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self.lives = Lives(options)
        self._cluster = options.system or options.log_name
        self.ignored: Counter[str] = Counter()
        self.warnings: list[str] = []
        self._looked = 0, -1  # lines at hand that were looked at, and which of them is a rest

    def name_of(self, job: str, cluster: str = "") -> str:
        """The name of a job: ``CLUSTER:ID``, for every cluster counts from 1.

        Args:
            job: its id, with that of its task: ``123``, ``123_4``, ``123+0``.
            cluster: what the record says; where it is silent, `ReaderOptions.system` counts, else
                the log's name.
        """
        cluster = cluster or self._cluster
        return f"{cluster}:{job}" if cluster else job

    def read_line(self, line: str) -> list[NamedEvent]:
        """The events of a line that is not blank; none where it was counted as ignored.

        Raises:
            UnreadableRecordError: it cannot be read.
        """
        raise NotImplementedError

    def is_cut(self, line: str) -> bool:
        """Return whether a line that cannot be read begins a record and does not end it."""
        return False

    def is_rest(self, line: str) -> bool:
        """Return whether a line ends a record that it does not begin."""
        return False

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole lines at the front of the data (see `outrider.api.LogReader.read`).

        A name with a line end cuts its record in two, and what stands between them was written by
        a user, however much it looks like records: all of it is refused (`FORGED`).
        """
        end = data.rfind(b"\n") + 1
        reading = Reading([], end, 0, 0, {}, {})
        rejected: Counter[str] = Counter()
        lines = data[:end].split(b"\n")[:-1]
        self._looked = 0, -1
        number = 0
        while number < len(lines):
            line = _text(lines[number])
            number += 1
            if not line or line.isspace():
                continue
            reading.records += 1
            try:
                if len(line) > MOST_LINE_BYTES:
                    raise UnreadableRecordError("too_long")
                reading.events += self.read_line(line)
            except UnreadableRecordError as reason:
                between = self._between(lines, number) if self.is_cut(line) else 0
                if between is None and not final:  # the rest of it is not at hand yet
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
        elif len(data) - end > MOST_LINE_BYTES:
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
        """Return how many lines from here on belong to a record that was cut before them.

        0 where none of the next `MOST_BETWEEN` lines is its rest; None where these are not all
        at hand and none of those at hand is. No line is looked at twice.
        """
        stop = min(start + MOST_BETWEEN, len(lines))
        looked, rest = self._looked
        if rest < start:
            looked = max(looked, start)
            while looked < stop and rest < start:
                rest = looked if self.is_rest(_text(lines[looked])) else rest
                looked += 1
            self._looked = looked, rest
        if start <= rest < stop:
            return rest - start + 1
        return 0 if stop - start == MOST_BETWEEN else None

    def save(self) -> Any:
        """Jobs of which the next record tells whether they went on."""
        return {"lost_runs": self.lives.lost_runs.save()}

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self.lives.lost_runs.restore(saved["lost_runs"])


def _text(line: bytes) -> str:
    return line.decode("utf-8", "replace").removesuffix("\r")
