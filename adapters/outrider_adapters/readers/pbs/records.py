"""One accounting record after another, turned into events."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from outrider.api import JobSpec, NamedEvent, ReaderOptions, Reading, events
from outrider_adapters.readers.end_records import KILLED, REMOVED, life_of
from outrider_adapters.readers.pbs import exits, kinds
from outrider_adapters.readers.pbs.deletions import Deletions
from outrider_adapters.readers.pbs.fields import AmbiguousError, epoch, parse
from outrider_adapters.readers.pbs.places import UNKNOWN_HOST, place_of
from outrider_adapters.readers.pbs.specs import spec_of
from outrider_adapters.readers.pbs.stamps import Stamps

_HEADER: Final = re.compile(
    r"(?:\d{8}:)?(\d\d/\d\d/\d{4} \d\d:\d\d):(\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:?\d\d)?"
    r";([^;]);([^;]{1,255})(?:;(.*))?",
    re.ASCII,
)
_STATUS = re.compile(r"-?\d{1,5}", re.ASCII)
_MISMATCH_S: Final = 900
"""A start stamped this far from its Unix time: the zone is not the server's."""

Fields = Mapping[str, str]


class Records:
    """Reads records; what is no event is counted in the reading it is told of.

    Attributes:
        deletions: requests to delete that still wait for the end of a run.
        stamps: turns the times at the front of records into Unix seconds.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self.deletions = Deletions()
        self.stamps = Stamps(options)
        self._zone = options.timezone or "UTC"
        self._warned = False
        self._readers: dict[str, Callable[[str, float, str, Reading], None]] = {
            "Q": self._queued,
            "S": self._started,
            "E": self._ended,
            "R": self._rerun,
            "D": self._deleted,
            "A": self._aborted,
            "C": self._checkpointed,
            "M": self._moved,
            "z": self._suspended,
            "r": self._resumed,
        }

    def read(self, record: str, reading: Reading) -> None:
        """Tell the reading what one record says: events, or that it is ignored or rejected."""
        header = _HEADER.fullmatch(record)
        if header is None:
            _count(reading.rejected, "garbage")
            return
        minute, second, zone, letter, job, message = header.groups()
        try:
            stamp_s = self.stamps.at(minute, second, zone)
        except ValueError:
            _count(reading.rejected, "date")
            return
        if stamp_s >= self.deletions.due_s:
            self._tell_overdue(stamp_s, False, reading)
        read = self._readers.get(letter)
        if read is not None:
            if "[]" in job:
                _count(reading.ignored, kinds.ARRAY_PARENT)
            else:
                try:
                    read(job, stamp_s, message or "", reading)
                except AmbiguousError:
                    _count(reading.rejected, "ambiguous")
        elif letter in kinds.IGNORED:
            _count(reading.ignored, kinds.IGNORED[letter])
        else:
            _count(reading.rejected, "unknown_record_type")

    def waits_after(self, record: bytes) -> bool:
        """Whether a request to delete waits for the end of a run, with this record behind it."""
        return self.deletions.waiting or b";D;" in record or b";A;" in record

    def finish(self, reading: Reading) -> None:
        """Nothing more will come: no request waits any longer."""
        self._tell_overdue(float("-inf"), True, reading)

    # -- what the letters mean ----------------------------------------------------------------

    def _queued(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """A job enters a queue. Torque says no more than which, and says it of every queue."""
        fields = parse(message)
        try:
            created_s = epoch(fields, "ctime")
            spec = spec_of(fields, created_s or stamp_s)
        except ValueError:
            _count(reading.rejected, "date")
            return
        if created_s is None:  # a later queue's record would give the job a later submission
            spec = _recalled(spec)
        reading.events.append((created_s or stamp_s, events.SUBMITTED, job, spec))

    def _started(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        fields = parse(message)
        try:
            start_s = epoch(fields, "start")
            self._check_zone(start_s, stamp_s, reading)
            begun = _begun(job, fields, start_s or stamp_s)
        except ValueError:
            _count(reading.rejected, "date")
            return
        reading.events += begun

    def _rerun(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """A run is over and its job is queued again. Torque gives no pairs, PBS Pro all."""
        fields = parse(message)
        status = _status(fields)
        reason = "unknown" if status is None else exits.requeue_reason(status, _is_torque(fields))
        self._requeued(job, stamp_s, fields, reason, reading)

    def _requeued(
        self, job: str, stamp_s: float, fields: Fields, reason: str, reading: Reading
    ) -> None:
        try:
            start_s, end_s = epoch(fields, "start"), epoch(fields, "end") or stamp_s
            begun = [] if start_s is None else _begun(job, fields, start_s)
        except ValueError:
            _count(reading.rejected, "date")
            return
        if start_s is not None and end_s < start_s:
            _count(reading.rejected, "ends_before_it_starts")
            return
        reading.events += [*begun, (end_s, events.EVICTED, job, reason)]

    def _ended(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        fields = parse(message)
        status = _status(fields)
        fate = exits.COMPLETED if status is None else exits.fate_of(status, _is_torque(fields))
        if fate.goes_on:
            self._requeued(job, stamp_s, fields, fate.reason, reading)
        else:
            self._gone(job, stamp_s, fields, fate.reason, reading)

    def _gone(
        self, job: str, stamp_s: float, fields: Fields, reason: str, reading: Reading
    ) -> None:
        """A job's last run ended, or the job left without one (``start=0``)."""
        try:
            submit_s, start_s = epoch(fields, "ctime"), epoch(fields, "start")
            end_s = epoch(fields, "end") or stamp_s
            spec = spec_of(fields, submit_s)
        except ValueError:
            _count(reading.rejected, "date")
            return
        if start_s is not None and end_s < start_s:
            _count(reading.rejected, "ends_before_it_starts")
            return
        if start_s is None and "start" in fields:
            reason = reason or exits.FAILED_START.reason
        deletion = self.deletions.answered(job)
        if deletion is not None:
            reason = deletion.reason
            if not deletion.told:
                _count(reading.ignored, kinds.DELETION_OF_RUN)
            elif (start_s or deletion.time_s) <= deletion.time_s <= end_s:
                end_s = deletion.time_s  # as was told; what is left of the run is seconds
        machine, cpus = _place(fields, spec)
        reading.events += life_of(job, spec, submit_s, start_s, end_s, machine, cpus, reason)

    def _deleted(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        self._ask(job, stamp_s, REMOVED, reading)

    def _aborted(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """The server gives a job up; some servers write the record of its end into this one."""
        fields = parse(message)
        if "end" in fields:
            self._gone(job, stamp_s, fields, KILLED, reading)
        else:
            self._ask(job, stamp_s, KILLED, reading)

    def _ask(self, job: str, stamp_s: float, reason: str, reading: Reading) -> None:
        if not self.deletions.ask(job, stamp_s, reason):
            _count(reading.ignored, kinds.DELETION_REPEATED)

    def _checkpointed(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """A run ends with a checkpoint and its job is held; or it only wrote one."""
        if message and "held" not in message:
            _count(reading.ignored, kinds.CHECKPOINT)
        else:
            reading.events.append((stamp_s, events.HELD, job, None))

    def _moved(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        reading.events.append((stamp_s, events.REMOVED, job, REMOVED))

    def _suspended(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        reading.events.append((stamp_s, events.SUSPENDED, job, None))

    def _resumed(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        reading.events.append((stamp_s, events.RESUMED, job, None))

    # -- what lies between records ------------------------------------------------------------

    def _tell_overdue(self, now_s: float, final: bool, reading: Reading) -> None:
        reading.events += [
            (deletion.time_s, events.REMOVED, job, deletion.reason)
            for job, deletion in self.deletions.overdue(now_s, final)
        ]

    def _check_zone(self, start_s: float | None, stamp_s: float, reading: Reading) -> None:
        if self._warned or start_s is None or abs(stamp_s - start_s) < _MISMATCH_S:
            return
        self._warned = True
        hours = (stamp_s - start_s) / 3600
        reading.warnings.append(
            f"a start is stamped {hours:+.1f} h from its own Unix time: {self._zone} is not the "
            "server's time zone, give it (timezone), or submissions are off by as much"
        )


def _begun(job: str, fields: Fields, start_s: float) -> list[NamedEvent]:
    """Submission and start, as the record of the job's end will tell them, too."""
    submit_s = epoch(fields, "ctime")
    spec = spec_of(fields, submit_s)
    return life_of(job, spec, submit_s, start_s, start_s, *_place(fields, spec))[:-1]


def _place(fields: Fields, spec: JobSpec) -> tuple[str, int]:
    exec_host = fields.get("exec_host")
    return place_of(exec_host) if exec_host else (UNKNOWN_HOST, spec.cpus)


def _status(fields: Fields) -> int | None:
    text = fields.get("Exit_status") or fields.get("exit_status") or ""
    return int(text) if _STATUS.fullmatch(text) else None


def _is_torque(fields: Fields) -> bool:
    """Torque names the owner in every record that has pairs, PBS Pro in none."""
    return "owner" in fields


def _recalled(spec: JobSpec) -> JobSpec:
    return JobSpec(
        user=spec.user, vo=spec.vo, job_class=spec.job_class, cpus=spec.cpus,
        estimate_s=spec.estimate_s, eligible_s=spec.eligible_s, recalled=True,
    )  # fmt: skip


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1
