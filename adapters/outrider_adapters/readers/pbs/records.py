"""Parse accounting records into events, one after another."""

import datetime as dt
import re
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from outrider.api import JobSpec, NamedEvent, ReaderOptions, Reading, events
from outrider_adapters.readers.pbs import exits
from outrider_adapters.readers.pbs.specs import (
    UNKNOWN_HOST,
    AmbiguousError,
    epoch,
    parse,
    place_of,
    spec_of,
)
from outrider_adapters.readers.shared import KILLED, MAX_DISORDER_S, REMOVED, again_s, life_of

_HEADER: Final = re.compile(
    r"(?:\d{8}:)?(\d\d/\d\d/\d{4} \d\d:\d\d):(\d\d(?:\.\d{1,9})?)(Z|[+-]\d\d:?\d\d)?"
    r";([^;]);([^;]{1,255})(?:;(.*))?",
    re.ASCII,
)
_STATUS = re.compile(r"-?\d{1,5}", re.ASCII)
_MISMATCH_S: Final = 900
"""Limit of the difference of a start's stamp and Unix time; above it the zone is wrong."""

Fields = Mapping[str, str]


class Records:
    """Parser of records; those that are not events are counted in the reading.

    Attributes:
        deletions: requests to delete that still wait for the end of a run.
        stamps: converts the times at the front of records into Unix seconds.
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
        """Add a record to the reading: its events, or a count of ignored or rejected."""
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
            self._add_overdue(stamp_s, False, reading)
        read = self._readers.get(letter)
        if read is not None:
            if "[]" in job:
                _count(reading.ignored, ARRAY_PARENT)
            else:
                try:
                    read(job, stamp_s, message or "", reading)
                except AmbiguousError:
                    _count(reading.rejected, "ambiguous")
        elif letter in IGNORED:
            _count(reading.ignored, IGNORED[letter])
        else:
            _count(reading.rejected, "unknown_record_type")

    def waits_after(self, record: bytes) -> bool:
        """Return whether a request to delete waits for the end of a run, after this record."""
        return self.deletions.waiting or b";D;" in record or b";A;" in record

    def finish(self, reading: Reading) -> None:
        """Finish the reading: requests no longer wait."""
        self._add_overdue(float("-inf"), True, reading)

    # -- records by their letter --------------------------------------------------------------

    def _queued(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """Add a job that enters a queue; Torque writes only its name, once for every queue."""
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
        """Add the end of a run whose job is requeued. Torque gives no pairs, PBS Pro all."""
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
        """Add the last run of a job, or its removal without a run (``start=0``)."""
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
            if not deletion.published:
                _count(reading.ignored, DELETION_OF_RUN)
            elif (start_s or deletion.time_s) <= deletion.time_s <= end_s:
                end_s = deletion.time_s  # as published; the rest of the run is seconds
        machine, cpus = _place(fields, spec)
        reading.events += life_of(job, spec, submit_s, start_s, end_s, machine, cpus, reason)

    def _deleted(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        self._request(job, stamp_s, REMOVED, reading)

    def _aborted(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """Add an abort by the server; some servers write the record of the job's end into it."""
        fields = parse(message)
        if "end" in fields:
            self._gone(job, stamp_s, fields, KILLED, reading)
        else:
            self._request(job, stamp_s, KILLED, reading)

    def _request(self, job: str, stamp_s: float, reason: str, reading: Reading) -> None:
        if not self.deletions.ask(job, stamp_s, reason):
            _count(reading.ignored, DELETION_REPEATED)

    def _checkpointed(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """Add a hold after a checkpoint; a checkpoint alone is ignored."""
        if message and "held" not in message:
            _count(reading.ignored, CHECKPOINT)
        else:
            reading.events.append((stamp_s, events.HELD, job, None))

    def _moved(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        reading.events.append((stamp_s, events.REMOVED, job, REMOVED))

    def _suspended(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        reading.events.append((stamp_s, events.SUSPENDED, job, None))

    def _resumed(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        reading.events.append((stamp_s, events.RESUMED, job, None))

    # -- events between records ---------------------------------------------------------------

    def _add_overdue(self, now_s: float, final: bool, reading: Reading) -> None:
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
    """Return submission and start, with the same values as the record of the job's end."""
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
    """Return whether the record is Torque's: it names the owner in every record with pairs."""
    return "owner" in fields


def _recalled(spec: JobSpec) -> JobSpec:
    return JobSpec(
        user=spec.user, vo=spec.vo, job_class=spec.job_class, cpus=spec.cpus,
        estimate_s=spec.estimate_s, eligible_s=spec.eligible_s, recalled=True,
    )  # fmt: skip


def _count(counts: dict[str, int], name: str) -> None:
    counts[name] = counts.get(name, 0) + 1


# -- deletions -------------------------------------------------------------------------------------
# Requests to end a job (``D``, ``A``), which may or may not be its last record.

PATIENCE_S: Final = 60.0
"""Maximum time from a request to end a run until its ``E`` is written, approximately."""

_REMEMBERED_S: Final = 3_600.0
_NOTHING_DUE: Final = float("inf")


class Deletion(msgspec.Struct, rename={"published": "told"}):
    """Request to end a job.

    Attributes:
        time_s: of the request, in Unix seconds.
        reason: ``removed`` by its user or a manager, ``killed`` by the server.
        published: true if it was reported as the job's removal; saved as ``told``.
    """

    time_s: float
    reason: str
    published: bool = False


class Deletions:
    """Store of requests until the log shows what they ended.

    A queued job is gone with the request and no further record is written. A running job lives
    until its end record, which then is the removal, and the request its reason. The log shows
    which it was within `PATIENCE_S` of its own clock. After that the request counts as the
    removal; it is remembered for about an hour, in case the end comes later.

    Attributes:
        due_s: time of the log from which `overdue` returns something.
    """

    def __init__(self) -> None:
        self._requests: dict[str, Deletion] = {}
        self._pending: dict[str, Deletion] = {}  # of the last minute; checked every second
        self._prune_s = float("-inf")
        self.due_s = _NOTHING_DUE

    @property
    def waiting(self) -> bool:
        """True if a request is pending: it is not known what it ended."""
        return bool(self._pending)

    def ask(self, job: str, time_s: float, reason: str) -> bool:
        """Store a request to end a job; False if there was one before."""
        if job in self._requests:
            return False
        self._requests[job] = self._pending[job] = Deletion(time_s, reason)
        self.due_s = min(self.due_s, time_s + PATIENCE_S)
        return True

    def answered(self, job: str) -> Deletion | None:
        """Return and remove the request that ended a job's run, if there was one."""
        self._pending.pop(job, None)
        return self._requests.pop(job, None)

    def overdue(self, now_s: float, final: bool = False) -> list[tuple[str, Deletion]]:
        """Return requests that are the removal themselves, as no end came; with `final`, all."""
        published = [
            (job, deletion)
            for job, deletion in self._pending.items()
            if final or now_s - deletion.time_s >= PATIENCE_S
        ]
        for job, deletion in published:
            deletion.published = True
            del self._pending[job]
        if now_s >= self._prune_s:
            self._prune_s = now_s + PATIENCE_S
            for job, deletion in list(self._requests.items()):
                if deletion.published and now_s - deletion.time_s >= _REMEMBERED_S:
                    del self._requests[job]
        self._look_ahead()
        return published

    def save(self) -> dict[str, Any]:
        """Return all requests as JSON types."""
        return {job: msgspec.to_builtins(deletion) for job, deletion in self._requests.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Continue from what `save` returned."""
        self._requests = {job: msgspec.convert(entry, Deletion) for job, entry in saved.items()}
        self._pending = {job: one for job, one in self._requests.items() if not one.published}
        self._look_ahead()

    def _look_ahead(self) -> None:
        pending = (deletion.time_s for deletion in self._pending.values())
        self.due_s = min(pending, default=_NOTHING_DUE) + PATIENCE_S


# -- kinds -----------------------------------------------------------------------------------------
# Letters of accounting records, and their events here.
#
# ======  ===================================  ==================================================
# letter  PBS's meaning                        here
# ======  ===================================  ==================================================
# ``Q``   queued                               submitted
# ``S``   started                              started
# ``E``   ended                                the job's whole life (see `exits`)
# ``R``   rerun                                evicted; the job is queued again
# ``D``   deleted by request                   removed, or the reason why its run ends
# ``A``   aborted by the server                the same, with the reason ``killed``
# ``C``   checkpointed and held                held; ignored where only checkpointed
# ``z``   suspended (OpenPBS 20)               suspended
# ``r``   resumed (OpenPBS 20)                 resumed
# ``M``   moved to another server              removed: it is no longer in this server's queue
# others  `IGNORED`                            ignored, counted by kind
# ======  ===================================  ==================================================
#
# Sources: ``src/include/acct.h`` of OpenPBS and of Torque; "Accounting log" in the PBS Professional
# administrator's guide, "Accounting records" in Torque's.

IGNORED: Final = {
    "T": "restart",  # from a checkpoint; it names no machine, the end record contains the run
    "s": "nodes_pruned",  # a started job gave back nodes that it had reserved
    "u": "phase",  # a run gave back some of its nodes: usage until then
    "c": "phase",  # resources with which it continues
    "e": "phase",  # usage of the last stretch
    "a": "alteration",
    "L": "licence",
    "U": "reservation",  # requested
    "Y": "reservation",  # confirmed
    "B": "reservation",  # begun
    "F": "reservation",  # finished
    "K": "reservation",  # removed by server or scheduler
    "k": "reservation",  # removed by its owner
    "P": "provisioning",  # begun
    "p": "provisioning",  # ended
}
"""Letters of records that are not events of a job."""

ARRAY_PARENT: Final = "array_parent"
"""``123[].server`` is the parent of all jobs of an array, and never runs itself."""

CHECKPOINT: Final = "checkpoint"
DELETION_OF_RUN: Final = "deletion_of_run"
"""Kind of a request followed by an end record, which is the removal."""

DELETION_REPEATED: Final = "deletion_repeated"


# -- stamps ----------------------------------------------------------------------------------------
# Time at the front of a record: local time of the server, converted to Unix seconds.

_MAX_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes rarely recur
_MINUTE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d)", re.ASCII)


class Stamps:
    """Converter of times such as ``11/21/2026 03:17:00`` into Unix seconds.

    PBS writes the local time of its server without a zone. It is read as local time of
    `options.timezone`, and UTC if that is None. Of a repeated hour the first is assumed
    until the times in the file decrease. A stamp with a zone is converted by that zone.

    Attributes:
        last_s: the time returned last, in Unix seconds; None before the first.

    Raises:
        ConfigurationError: the time zone is unknown.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self.last_s: float | None = None
        self._zone = options.zone()
        self._minutes: dict[tuple[str, str | None], float] = {}
        self._again: dict[tuple[str, str | None], float] = {}  # of minutes that occur twice

    def at(self, minute: str, second: str, zone: str | None) -> float:
        """Return Unix seconds of a stamp.

        Args:
            minute: text up to the minutes, such as ``11/21/2026 03:17``.
            second: seconds, with or without a fraction.
            zone: ``Z``, ``+01:00``, ``+0100`` or None.

        Raises:
            ValueError: there is no such day or hour.
        """
        key = minute, zone
        start_s = self._minutes.get(key)
        if start_s is None:
            start_s, again = self._read_minute(minute, zone)
            if len(self._minutes) >= _MAX_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[key] = start_s
            if again is not None:
                self._again[key] = again
        time_s = start_s + float(second)
        if self.last_s is not None and time_s < self.last_s - MAX_DISORDER_S:
            time_s = self._again.get(key, start_s) + float(second)
        self.last_s = time_s
        return time_s

    def _read_minute(self, minute: str, zone: str | None) -> tuple[float, float | None]:
        """Return when a minute begins, and when it does so again, if it occurs twice."""
        match = _MINUTE.fullmatch(minute)
        if match is None:
            raise ValueError(f'"{minute}" is not a date; expected "11/21/2026 03:17"')
        month, day, year, hour, minutes = map(int, match.groups())
        there = _zone(zone) if zone else self._zone
        try:
            time = dt.datetime(year, month, day, hour, minutes, tzinfo=there)
            return time.timestamp(), again_s(time)
        except OverflowError as error:
            raise ValueError(f'"{minute}" is out of range') from error


def _zone(text: str) -> dt.tzinfo:
    if text == "Z":
        return dt.UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return dt.timezone(dt.timedelta(minutes=-minutes if text[0] == "-" else minutes))
