"""One accounting record after another, turned into events."""

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
from outrider_adapters.readers.shared import KILLED, LATE_S, REMOVED, again_s, life_of

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
        """Return whether a request to delete waits for the end of a run, with this record behind it."""
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
                _count(reading.ignored, DELETION_OF_RUN)
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
            _count(reading.ignored, DELETION_REPEATED)

    def _checkpointed(self, job: str, stamp_s: float, message: str, reading: Reading) -> None:
        """A run ends with a checkpoint and its job is held; or it only wrote one."""
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


# -- deletions -------------------------------------------------------------------------------------
# Requests to end a job (``D``, ``A``), which may or may not be the last word about it.

PATIENCE_S: Final = 60.0
"""A run that is told to end has ended, and its ``E`` is written, within about this time."""

_REMEMBERED_S: Final = 3_600.0
_NOTHING_DUE: Final = float("inf")


class Deletion(msgspec.Struct):
    """A job that somebody asked to end.

    Attributes:
        time_s: of the request, in Unix seconds.
        reason: ``removed`` by its user or a manager, ``killed`` by the server.
        told: it was given out as the job's removal.
    """

    time_s: float
    reason: str
    told: bool = False


class Deletions:
    """Keeps requests until the log shows what they ended.

    A queued job is gone with the request and nothing more is written. A running job lives until
    its end record, which then is the removal, and the request its reason. Which of them it was
    shows within `PATIENCE_S` of the log's own clock. After that the request is taken for the
    removal; it is remembered for an hour or little more, in case the end comes later.

    Attributes:
        due_s: from this time of the log on, `overdue` has something to say.
    """

    def __init__(self) -> None:
        self._asked: dict[str, Deletion] = {}
        self._untold: dict[str, Deletion] = {}  # of the last minute, and looked at every second
        self._prune_s = float("-inf")
        self.due_s = _NOTHING_DUE

    @property
    def waiting(self) -> bool:
        """True if a request has not shown yet what it ended."""
        return bool(self._untold)

    def ask(self, job: str, time_s: float, reason: str) -> bool:
        """Somebody asks for the end of a job; False if that was asked before."""
        if job in self._asked:
            return False
        self._asked[job] = self._untold[job] = Deletion(time_s, reason)
        self.due_s = min(self.due_s, time_s + PATIENCE_S)
        return True

    def answered(self, job: str) -> Deletion | None:
        """The job's run has ended: the request that ended it, if there was one."""
        self._untold.pop(job, None)
        return self._asked.pop(job, None)

    def overdue(self, now_s: float, final: bool = False) -> list[tuple[str, Deletion]]:
        """Requests that are the removal themselves, as no end came; with `final`, all."""
        given_out = [
            (job, deletion)
            for job, deletion in self._untold.items()
            if final or now_s - deletion.time_s >= PATIENCE_S
        ]
        for job, deletion in given_out:
            deletion.told = True
            del self._untold[job]
        if now_s >= self._prune_s:
            self._prune_s = now_s + PATIENCE_S
            for job, deletion in list(self._asked.items()):
                if deletion.told and now_s - deletion.time_s >= _REMEMBERED_S:
                    del self._asked[job]
        self._look_ahead()
        return given_out

    def save(self) -> dict[str, Any]:
        """Everything as JSON types."""
        return {job: msgspec.to_builtins(deletion) for job, deletion in self._asked.items()}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self._asked = {job: msgspec.convert(entry, Deletion) for job, entry in saved.items()}
        self._untold = {job: asked for job, asked in self._asked.items() if not asked.told}
        self._look_ahead()

    def _look_ahead(self) -> None:
        pending = (deletion.time_s for deletion in self._untold.values())
        self.due_s = min(pending, default=_NOTHING_DUE) + PATIENCE_S


# -- kinds -----------------------------------------------------------------------------------------
# The letters of accounting records, and what each is taken for.
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
# ``M``   moved to another server              removed: it is not in this server's queue any more
# others  `IGNORED`                            ignored, counted by kind
# ======  ===================================  ==================================================
#
# Sources: ``src/include/acct.h`` of OpenPBS and of Torque; "Accounting log" in the PBS Professional
# administrator's guide, "Accounting records" in Torque's.

IGNORED: Final = {
    "T": "restart",  # from a checkpoint; it names no machine, the end record tells of the run
    "s": "nodes_pruned",  # a started job gave back the nodes it had asked for in reserve
    "u": "phase",  # a run gave back some of its nodes: usage until then
    "c": "phase",  # what it goes on with
    "e": "phase",  # usage of the last stretch
    "a": "alteration",
    "L": "licence",
    "U": "reservation",  # asked for
    "Y": "reservation",  # confirmed
    "B": "reservation",  # begun
    "F": "reservation",  # finished
    "K": "reservation",  # removed by server or scheduler
    "k": "reservation",  # removed by its owner
    "P": "provisioning",  # begun
    "p": "provisioning",  # ended
}
"""Letters that are no event of a job."""

ARRAY_PARENT: Final = "array_parent"
"""``123[].server`` stands for all jobs of an array and never runs itself."""

CHECKPOINT: Final = "checkpoint"
DELETION_OF_RUN: Final = "deletion_of_run"
"""A request that an end record followed, which is the removal."""

DELETION_REPEATED: Final = "deletion_repeated"


# -- stamps ----------------------------------------------------------------------------------------
# The time at the front of a record: local time of the server, turned into Unix seconds.

_MOST_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes hardly come again
_MINUTE = re.compile(r"(\d\d)/(\d\d)/(\d{4}) (\d\d):(\d\d)", re.ASCII)


class Stamps:
    """Turns times such as ``11/21/2026 03:17:00`` into Unix seconds.

    PBS writes the local time of its server and names no zone. It is taken to be local time of
    `options.timezone`, and UTC where that is None; of an hour that comes twice, the first is
    meant until the file falls back in it. A stamp that does name a zone is taken at its word.

    Attributes:
        last_s: the time given out last, in Unix seconds; None before the first.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self.last_s: float | None = None
        self._zone = options.zone()
        self._minutes: dict[tuple[str, str | None], float] = {}
        self._again: dict[tuple[str, str | None], float] = {}  # of those that come twice

    def at(self, minute: str, second: str, zone: str | None) -> float:
        """Unix seconds of a stamp.

        Args:
            minute: up to its minutes, such as ``11/21/2026 03:17``.
            second: seconds, with or without a fraction.
            zone: ``Z``, ``+01:00``, ``+0100`` or None.

        Raises:
            ValueError: there is no such day or hour.
        """
        key = minute, zone
        start_s = self._minutes.get(key)
        if start_s is None:
            start_s, again = self._read_minute(minute, zone)
            if len(self._minutes) >= _MOST_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[key] = start_s
            if again is not None:
                self._again[key] = again
        time_s = start_s + float(second)
        if self.last_s is not None and time_s < self.last_s - LATE_S:
            time_s = self._again.get(key, start_s) + float(second)
        self.last_s = time_s
        return time_s

    def _read_minute(self, minute: str, zone: str | None) -> tuple[float, float | None]:
        """Return when a minute begins, and when it does again, if it comes twice."""
        match = _MINUTE.fullmatch(minute)
        if match is None:
            raise ValueError(f'"{minute}" is no date; expected "11/21/2026 03:17"')
        month, day, year, hour, minutes = map(int, match.groups())
        there = _zone(zone) if zone else self._zone
        try:
            time = dt.datetime(year, month, day, hour, minutes, tzinfo=there)
            return time.timestamp(), again_s(time)
        except OverflowError as error:
            raise ValueError(f'"{minute}" is too far away') from error


def _zone(text: str) -> dt.tzinfo:
    if text == "Z":
        return dt.UTC
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return dt.timezone(dt.timedelta(minutes=-minutes if text[0] == "-" else minutes))
