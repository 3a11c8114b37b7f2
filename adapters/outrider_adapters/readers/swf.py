"""Reader of Standard Workload Format files: results of a batch system, one job per line.

The format: https://www.cs.huji.ac.il/labs/parallel/workload/swf.html. A line contains a job's
whole life: submitted, started after its wait, and ended after its run time.

============================  =====================================================================
status                        here
============================  =====================================================================
1 completed, 0 failed, -1     completed: an exit code is the user's business
5 cancelled                   removed: while it ran, or, if it never did, after its wait
2, 3, 4 parts of a job        ignored (``part of a job``): another line contains the whole job
============================  =====================================================================
"""

import re
from collections import Counter
from math import isfinite
from typing import Any, ClassVar, Final

from outrider.api import JobSpec, LogReader, NamedEvent, ReaderOptions, Reading
from outrider_adapters.readers.shared import REMOVED, life_of

COLUMNS: Final = 18
REQUESTED_BELOW_S: Final = 900.0
"""Jobs with a smaller request are interactive, if the log has no interactive queue. The run time
does not show what the user meant, and would tell policies the future.
"""
UNKNOWN_HOST: Final = "unknown"
"""Machine of a run, if the log does not contain its partition."""

_MISSING: Final = -1.0
_CANCELLED: Final = 5.0
_PARTS: Final = frozenset({2.0, 3.0, 4.0})
_MAX_LINE_BYTES: Final = 1 << 20
_MAX_LINE_CHARACTERS: Final = 4096  # 18 numbers
_MAX_TIME_S: Final = 1e9
_NUMBER = rb"-?\d+(?:\.\d*)?"
_JOB = re.compile(
    rb"^[ \t]*" + _NUMBER + rb"(?:[ \t]+" + _NUMBER + rb"){17}[ \t]*\r?$", re.MULTILINE
)
_FIELD = re.compile(
    rb"^[ \t]*;[ \t]*(?:UnixStartTime|MaxProcs|MaxNodes|MaxJobs|MaxRecords)[ \t]*:", re.MULTILINE
)
_ZERO = re.compile(r"\s*;\s*UnixStartTime\s*:\s*(\d{1,10})\b")
_INTERACTIVE = re.compile(r"\s*;\s*Queue\s*:\s*(\d{1,9})\W+interactive(?![\w.-])", re.IGNORECASE)
_MAX_QUEUES: Final = 1000


class UnreadableJobError(ValueError):
    """Line that cannot be parsed; its text is the reason under which it is counted."""


class SwfReader(LogReader):
    """Reader of Standard Workload Format files, as events.

    Times are Unix seconds: the log's own plus UnixStartTime of its header. Without that header they
    are unchanged, with a warning. VOs are groups; users and VOs have the
    log's numbers as names; a run's machine is its partition. A job's class follows from its queue
    if the header names an interactive one, otherwise from a request of less than 15 minutes.
    """

    name: ClassVar[str] = "swf"
    description: ClassVar[str] = "Standard Workload Format (Parallel Workloads Archive)"
    api_version = 1
    in_order: ClassVar[bool] = False

    def __init__(self, options: ReaderOptions) -> None:
        super().__init__(options)
        self._zero_s: float | None = None
        self._interactive: set[float] = set()
        self._warned = False

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file begins with a header or jobs of the format."""
        return _FIELD.search(head) is not None or _JOB.search(head) is not None

    def read(self, data: bytes, final: bool = False) -> Reading:
        """Read the whole lines at the front of the data (see `outrider.api.LogReader.read`)."""
        end = data.rfind(b"\n") + 1
        if final and end < len(data) and _JOB.fullmatch(data[end:]):
            end = len(data)  # the last line of a file needs no line end
        lines = data[:end].removesuffix(b"\n").decode("latin-1").split("\n") if end else []
        reading = Reading([], end, 0, len(lines), {}, {})
        ignored: Counter[str] = Counter()
        rejected: Counter[str] = Counter()
        for line in lines:
            if not line or line.isspace():
                continue
            if line.lstrip()[:1] == ";":
                self._read_header(line)
                continue
            reading.records += 1
            if len(line) > _MAX_LINE_CHARACTERS:
                rejected["too_long"] += 1
                continue
            try:
                found = self._life(line.split(), reading.warnings)
            except UnreadableJobError as reason:
                rejected[str(reason)] += 1
                continue
            reading.events += found
            ignored["part of a job"] += not found
        if len(data) - end > _MAX_LINE_BYTES:
            reading.records += 1
            rejected["garbage"] += 1
            reading.consumed = len(data)
        reading.ignored, reading.rejected = dict(+ignored), dict(rejected)
        return reading

    def save(self) -> Any:
        """Return the log's zero from the header, and its interactive queues."""
        return {
            "zero_s": self._zero_s,
            "warned": self._warned,
            "interactive": sorted(self._interactive),
        }

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned."""
        self._zero_s, self._warned = saved["zero_s"], saved["warned"]
        self._interactive = set(saved.get("interactive", ()))  # not in a cursor of an older release

    def _read_header(self, line: str) -> None:
        field = _ZERO.match(line)
        if field is not None and self._zero_s is None:
            self._zero_s = float(field[1])
        queue = _INTERACTIVE.match(line)
        if queue is not None and len(self._interactive) < _MAX_QUEUES:
            self._interactive.add(float(queue[1]))

    def _zero(self, warnings: list[str]) -> float:
        if self._zero_s is None and not self._warned:
            self._warned = True
            warnings.append(
                "the header has no UnixStartTime: times are seconds from the log's zero"
            )
        return self._zero_s or 0.0

    def _life(self, fields: list[str], warnings: list[str]) -> list[NamedEvent]:
        """Return the events of a line; none for a part of a job. Raises `UnreadableJobError`."""
        if len(fields) != COLUMNS:
            raise UnreadableJobError("number of columns")
        try:
            job, submit_s, wait_s, run_s, cpus, _, _, cpus_asked, asked_s, _, *rest = map(
                float, fields
            )
        except ValueError:
            raise UnreadableJobError("not a number") from None
        status, user, group, _, queue, partition, _, _ = rest
        times = (submit_s, wait_s, run_s)
        if not all(isfinite(value) for value in (job, *times, cpus, cpus_asked, asked_s, *rest)):
            raise UnreadableJobError("not a number")
        if status in _PARTS:
            return []
        if job < 0 or job % 1:
            raise UnreadableJobError("no job number")
        if submit_s < 0 or max(times) > _MAX_TIME_S:
            raise UnreadableJobError("no time")
        cpus = cpus_asked if cpus == _MISSING else cpus
        ran = run_s >= 0 and cpus >= 1
        if not ran and status != _CANCELLED:
            raise UnreadableJobError("no run")
        if ran and wait_s < 0:
            raise UnreadableJobError("no wait")
        queued_s = self._zero(warnings) + submit_s
        begin_s = queued_s + max(0.0, wait_s)
        spec = JobSpec(
            user=_name(user, ""),
            vo=_name(group, "all"),
            job_class="interactive" if self._is_interactive(queue, asked_s) else "batch",
            cpus=int(max(cpus, 1)),
            estimate_s=asked_s if asked_s > 0 else None,
        )
        return life_of(
            _name(job, ""), spec, queued_s, begin_s if ran else None,
            begin_s + run_s if ran else begin_s,
            _name(partition, UNKNOWN_HOST, "partition-"), spec.cpus,
            REMOVED if status == _CANCELLED else "",
        )  # fmt: skip

    def _is_interactive(self, queue: float, asked_s: float) -> bool:
        """Return whether the queue is interactive by the header, or else the request short."""
        if self._interactive:
            return queue in self._interactive
        return 0 < asked_s < REQUESTED_BELOW_S


def _name(number: float, missing: str, prefix: str = "") -> str:
    """Return a number of the log as a name; below 0 it is missing."""
    return missing if number < 0 else f"{prefix}{number:.15g}"
