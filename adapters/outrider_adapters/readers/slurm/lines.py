"""What both of Slurm's records have in common: one a line, told when a job has ended."""

from collections import Counter
from typing import Any, ClassVar, Final

from outrider.api import LogReader, NamedEvent, ReaderOptions, Reading
from outrider_adapters.readers.slurm.record_events import Lives, UnreadableRecordError

MOST_LINE_BYTES: Final = 1 << 20
"""What is longer than this and has no line end never becomes a record."""


class LineReader(LogReader):
    """Base of the readers: cuts lines, counts records.

    Subclasses say in `read_line` what a line is; `lives` tells what happened. A final reading of
    a file that ends with a whole line settles what is open (see `LostRuns`); half a line says
    that more will come.
    """

    in_order: ClassVar[bool] = False

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self.lives = Lives(options)
        self._cluster = options.system or options.log_name
        self.ignored: Counter[str] = Counter()
        self.warnings: list[str] = []

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

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole lines at the front of the data (see `outrider.api.LogReader.read`)."""
        end = data.rfind(b"\n") + 1
        reading = Reading([], end, 0, data.count(b"\n"), {}, {})
        rejected: Counter[str] = Counter()
        for line in data[:end].decode("utf-8", "replace").split("\n"):
            if not line or line.isspace():
                continue
            reading.records += 1
            try:
                reading.events += self.read_line(line.removesuffix("\r"))
            except UnreadableRecordError as reason:
                rejected[str(reason)] += 1
        if len(data) - end > MOST_LINE_BYTES:
            reading.records += 1
            rejected["garbage"] += 1
            reading.consumed = len(data)
        if final and reading.consumed == len(data):
            reading.events += self.lives.lost_runs.settle()
        reading.ignored, reading.rejected = dict(self.ignored), dict(rejected)
        reading.warnings = self.warnings
        self.ignored, self.warnings = Counter(), []
        return reading

    def save(self) -> Any:
        """Jobs of which the next record tells whether they went on."""
        return {"lost_runs": self.lives.lost_runs.save()}

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self.lives.lost_runs.restore(saved["lost_runs"])
