"""Convert a record of a job, in Slurm's words, into events."""

import datetime as dt
import re
from collections import OrderedDict
from collections.abc import Iterator
from itertools import islice
from types import MappingProxyType
from typing import Any, Final, NamedTuple

import msgspec

from outrider.api import JobSpec, NamedEvent, ReaderOptions, events
from outrider_adapters.readers.shared import KILLED, REMOVED, again_s, cached_if_short, life_of

_MAX_DIGITS: Final = 9
_HALF_A_REPETITION_S: Final = 900.0  # clocks are set back by at least half an hour
_MAX_NAME_CHARACTERS: Final = 300  # of a job with its cluster


class UnreadableRecordError(ValueError):
    """Record that cannot be parsed; its text is the reason under which it is counted."""


class Record(NamedTuple):
    """Record of a job, in Slurm's own words; a field is empty if the record lacks it.

    Attributes:
        job: the job's id, never a step's.
        allocated, requested: CPUs.
        elapsed: span of the run; only used if `start` is empty.
        restarts: how often the job was requeued before.
    """

    job: str
    state: str
    submit: str
    eligible: str
    start: str
    end: str
    elapsed: str
    allocated: str
    requested: str
    user: str
    account: str
    group: str
    limit: str
    nodes: str
    restarts: str


class Lives:
    """Converter of records into events; the older record of a job comes first.

    Attributes:
        lost_runs: jobs whose next record decides whether they continued.

    Raises:
        ConfigurationError: the time zone is unknown.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._clock = Clock(options)
        self.lost_runs = LostRuns()

    def events_of(self, record: Record) -> list[NamedEvent]:
        """Return the events of a record: at least one.

        Raises:
            UnreadableRecordError: it is inconsistent.
        """
        if len(record.job) > _MAX_NAME_CHARACTERS:
            raise UnreadableRecordError("too_long")
        state = record.state.partition(" ")[0]
        if state not in KNOWN:
            raise UnreadableRecordError("state")
        submit_s, eligible_s, start_s, end_s = self._times(record)
        ended = state not in UNENDED
        if ended and end_s is None:
            raise UnreadableRecordError("no_end")
        if start_s is not None and end_s is not None and end_s < start_s:
            raise UnreadableRecordError("ends_before_it_starts")
        since_s = next((s for s in (submit_s, start_s, end_s) if s is not None), None)
        if since_s is None:
            raise UnreadableRecordError("no_time")
        spec = _spec(record, since_s, eligible_s)
        seen = submit_s is not None and record.restarts in ("", "0")
        last_s = since_s if end_s is None else end_s
        *beginning, ending = life_of(
            record.job, spec, submit_s if seen else None, start_s, last_s,
            first_host(record.nodes), _whole(record.allocated) or spec.cpus,
            _removed_for(state, start_s is not None),
        )  # fmt: skip
        if not seen:
            spec = msgspec.structs.replace(spec, seen_submit=False, recalled=True)
            beginning.insert(0, (since_s, events.SUBMITTED, record.job, spec))
        self.lost_runs.record_seen(record.job, last_s if ended else None)
        if not ended:
            return beginning
        if state in EVICTED_FOR:
            return beginning + self._lost(record.job, state, start_s is not None, last_s)
        return [*beginning, ending]

    def _times(
        self, record: Record
    ) -> tuple[float | None, float | None, float | None, float | None]:
        """Return submission, eligibility, start of a run (None if there was none) and end."""
        at = self._clock.at
        try:
            submit_s = at(record.submit)
            eligible_s = None if record.eligible == record.submit else at(record.eligible, submit_s)
            start_s = at(record.start, submit_s)
            end_s = at(record.end, submit_s if start_s is None else start_s)
            if record.nodes not in NO_HOSTS and start_s is not None and end_s is not None:
                run_s = span_s(record.elapsed)
                if run_s is not None and run_s - (end_s - start_s) > _HALF_A_REPETITION_S:
                    end_s = at(record.end, end_s + 1)
        except ValueError:
            raise UnreadableRecordError("date") from None
        if record.nodes in NO_HOSTS:  # a job that never ran may have its end as its start
            start_s = None
        elif not record.start and end_s is not None:
            run_s = span_s(record.elapsed)
            start_s = end_s - run_s if run_s else None
        return submit_s, eligible_s, start_s, end_s

    def _lost(self, job: str, state: str, ran: bool, end_s: float) -> list[NamedEvent]:
        """Return the events of a lost run; its job may be requeued."""
        reason = EVICTED_FOR[state]
        found: list[NamedEvent] = [(end_s, events.EVICTED, job, reason)] if ran else []
        if state in LOST_RUNS:
            found += self.lost_runs.lost(job, end_s, reason)
        return found


def _removed_for(state: str, ran: bool) -> str:
    """Return why a job left before it was done; empty if it was done."""
    if state == "FAILED" and not ran:
        return "failed_start"
    return REMOVED_FOR.get(state, "")


def _spec(record: Record, since_s: float, eligible_s: float | None) -> JobSpec:
    """Return the user's request. The VO is the account, else the user's group.

    Slurm's records do not show whether a job was interactive, so its class is ``batch``.
    """
    return JobSpec(
        user=record.user,
        vo=record.account or record.group or "all",
        cpus=_whole(record.requested) or _whole(record.allocated) or 1,
        estimate_s=limit_s(record.limit),
        eligible_s=eligible_s if eligible_s is not None and eligible_s > since_s else None,
    )


def _whole(digits: str) -> int:
    """Return the number, or 0 if it is invalid."""
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _MAX_DIGITS
    return int(digits) if plain else 0


# -- lost runs -------------------------------------------------------------------------------------
# Jobs whose run was lost, while it is unknown whether Slurm requeued them.

MAX_OPEN: Final = 10_000
"""Limit of open jobs: beyond it, the job that waits the longest counts as gone."""


class LostRuns:
    """Store of jobs with a lost run, until a later record shows that the job continued.

    Jobs without a further record until the end of the file count as having left with their
    run. In a log that continues to grow they stay in the queue.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def lost(self, job: str, end_s: float, reason: str) -> list[NamedEvent]:
        """Store a lost run.

        Returns:
            the removal of another job, if there are too many now.
        """
        known = self._open.get(job)
        if known is None or end_s > known[0]:  # else it is a run that was reported before
            self._open[job] = end_s, reason
        if len(self._open) <= MAX_OPEN:
            return []
        other, (other_end_s, why) = self._open.popitem(last=False)
        return [(other_end_s, events.REMOVED, other, why)]

    def record_seen(self, job: str, end_s: float | None) -> None:
        """Handle another record of the job: with a later end, or none yet, the job continued."""
        lost = self._open.get(job)
        if lost is not None and (end_s is None or end_s > lost[0]):
            del self._open[job]

    def settle(self) -> list[NamedEvent]:
        """Return the removals of all remaining jobs, as the log has ended."""
        removals: list[NamedEvent] = [
            (end_s, events.REMOVED, job, reason) for job, (end_s, reason) in self._open.items()
        ]
        self._open.clear()
        return removals

    def save(self) -> Any:
        """Return the stored jobs, as JSON types."""
        return [[job, end_s, reason] for job, (end_s, reason) in self._open.items()]

    def restore(self, saved: Any) -> None:
        """Continue from what `save` returned."""
        self._open = OrderedDict((job, (end_s, reason)) for job, end_s, reason in saved)


# -- hosts -----------------------------------------------------------------------------------------
# Machine of a run, from Slurm's shorthand for many.

UNKNOWN_HOST: Final = "unknown"
"""Machine of a run whose record contains none."""
NO_HOSTS: Final = frozenset({"None assigned", "None", "(null)"})
"""Texts in place of a node list if no node was ever allocated."""
_FIRST = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_PARTS = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"\[([^\],-]*)[^\]]*\]")


@cached_if_short(entries=16_384)
def first_host(nodes: str) -> str:
    """Return the first host of a node list, `UNKNOWN_HOST` if it is empty.

    >>> first_host("rack[0-1]-n[07,09-12],login1")
    'rack0-n07'
    """
    match = _FIRST.match(nodes)
    return _RANGE.sub(r"\1", match[0]) if match else UNKNOWN_HOST


def hosts_of(nodes: str, most: int = 100_000) -> list[str]:
    """Return all hosts of a node list, in its order, but at most `most`.

    >>> hosts_of("rack[0-1]-n[07,09-10],login1")
    ['rack0-n07', 'rack0-n09', 'rack0-n10', 'rack1-n07', 'rack1-n09', 'rack1-n10', 'login1']
    """
    hosts: list[str] = []
    for match in _FIRST.finditer(nodes):
        parts = _PARTS.split(match[0])  # text and the inside of brackets, in turn
        names = [parts[0]]
        for inside, after in zip(parts[1::2], parts[2::2], strict=True):
            numbers = list(islice(_numbers(inside), most))
            names = list(islice((f"{n}{m}{after}" for n in names for m in numbers), most))
        hosts += names[: most - len(hosts)]
    return hosts


def _numbers(ranges: str) -> Iterator[str]:
    """Yield the numbers of ``07,09-12``, with the list's number of digits."""
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        if first.isdecimal() and last.isdecimal():
            yield from (f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1))
        else:
            yield one


# -- states ----------------------------------------------------------------------------------------
# Meaning of the states in Slurm's job records.
#
# =================================================  ==============================================
# state                                              here
# =================================================  ==============================================
# ``COMPLETED``, ``FAILED``                          completed: an exit code is the user's business
# ``CANCELLED``, ``CANCELLED by 1000``               removed (``removed``)
# ``TIMEOUT``, ``DEADLINE``, ``OUT_OF_MEMORY``       removed (``killed``)
# ``REQUEUED``, ``REQUEUE_HOLD``, ``REQUEUE_FED``,   evicted (``unknown``), requeued
# ``SPECIAL_EXIT``; ``PENDING`` of jobcomp
# ``PREEMPTED``                                      evicted (``preempted``), see `LOST_RUNS`
# ``NODE_FAIL``                                      evicted (``unknown``), see `LOST_RUNS`
# ``BOOT_FAIL``, ``LAUNCH_FAILED``                   evicted (``failed_start``), see `LOST_RUNS`
# ``PENDING``, ``RUNNING`` and others (`UNENDED`)    not ended: submitted, and maybe started
# ``REVOKED``                                        ignored: another cluster of a federation ran it
# =================================================  ==============================================
#
# Source: ``JOB STATE CODES`` in squeue(1) and sacct(1), and what Slurm 22.05 wrote when jobs were
# requeued, preempted and lost with their nodes.

COMPLETED: Final = frozenset({"COMPLETED", "FAILED"})
REMOVED_FOR: Final = {
    "CANCELLED": REMOVED,
    "TIMEOUT": KILLED,
    "DEADLINE": KILLED,
    "OUT_OF_MEMORY": KILLED,
}
"""States in which a job leaves before it is done, with the reason."""
REQUEUED: Final = "REQUEUED"
REQUEUED_FOR: Final = dict.fromkeys(
    (REQUEUED, "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"), "unknown"
)
"""States of a run that was lost while its job was requeued, with the reason."""
LOST_RUNS: Final = {
    "PREEMPTED": "preempted",
    "NODE_FAIL": "unknown",
    "BOOT_FAIL": "failed_start",
    "LAUNCH_FAILED": "failed_start",
}
"""States of a lost run, with the reason. The record is the same whether Slurm requeued the job
(``PreemptMode=REQUEUE``, ``JobRequeue=1``) or not: only a later record of the job shows it.
"""
UNENDED: Final = frozenset(
    {
        "PENDING",
        "RUNNING",
        "SUSPENDED",
        "CONFIGURING",
        "COMPLETING",
        "RESIZING",  # the record of a stretch before the job released or got nodes
        "SIGNALING",
        "STAGE_OUT",
        "STOPPED",
        "RESV_DEL_HOLD",
        "POWER_UP_NODE",
    }
)
REVOKED: Final = "REVOKED"
EVICTED_FOR: Final = REQUEUED_FOR | LOST_RUNS
KNOWN: Final = COMPLETED | UNENDED | {REVOKED, *REMOVED_FOR, *EVICTED_FOR}
# -- state words -----------------------------------------------------------------------------------
# Slurm's words for the states of jobs. A held job is PENDING there, with a reason.

STATE_WORDS: Final = MappingProxyType(
    {"queued": "PENDING", "running": "RUNNING", "suspended": "SUSPENDED", "held": "PENDING"}
)


# -- times -----------------------------------------------------------------------------------------
# Slurm's points in time and time spans, converted to seconds.

DAY_S: Final = 86_400
_END_OF_TIME_S: Final = 253_402_300_800  # the year 10,000
_MAX_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes rarely recur
_MAX_LIMIT_MIN: Final = 4_294_967_293  # above it are Slurm's NO_VAL and INFINITE
_UNSET: Final = frozenset({"", "unknown", "none", "invalid", "n/a"})
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):([0-5]\d|60)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_SPAN = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.\d{1,9})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class Clock:
    """Converter of points in time into Unix seconds.

    Slurm writes the local time of the printing process (``sacct``: the shell's, jobcomp: the
    controller's) without a zone. It is read as local time of `options.timezone`, and UTC
    if that is None. Of a repeated hour, the first is assumed unless that would be too
    early (see `at`). A time with a zone, and Unix seconds
    (``SLURM_TIME_FORMAT=%s``), need neither.

    Raises:
        ConfigurationError: the time zone is unknown.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._zone = options.zone()
        self._minutes: dict[str, float] = {}
        self._again: dict[str, float] = {}  # second time of minutes that occur twice

    def at(self, text: str, after_s: float | None = None) -> float | None:
        """Return Unix seconds; None for a time that was never set (``Unknown``, the first of 1970).

        Args:
            text: time in Slurm's notation.
            after_s: lower bound of the time: it selects the second of two repeated hours.

        Raises:
            ValueError: the text is not a time.
        """
        match = _STAMP.fullmatch(text)
        if match is not None:
            minute, second, zone = match.groups()
            minute = minute + zone if zone else minute
            time_s = self._minute_s(minute) + int(second)
            if after_s is not None and time_s < after_s and minute in self._again:
                time_s = self._again[minute] + int(second)
        elif text.lower() in _UNSET:
            return None
        elif _WHOLE.fullmatch(text):
            time_s = float(text)
        else:
            raise ValueError(f'"{text}" is not a time; expected "2026-11-21T03:17:00"')
        if time_s >= _END_OF_TIME_S:
            raise ValueError(f'"{text}" is out of range')
        return time_s if time_s >= DAY_S else None

    def _minute_s(self, minute: str) -> float:
        start_s = self._minutes.get(minute)
        if start_s is None:
            there = dt.datetime.fromisoformat(minute)
            if there.tzinfo is None:
                there = there.replace(tzinfo=self._zone)
            try:
                start_s, again = there.timestamp(), again_s(there)
            except OverflowError as error:
                raise ValueError(f'"{minute}" is out of range') from error
            if len(self._minutes) >= _MAX_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[minute] = start_s
            if again is not None:
                self._again[minute] = again
        return start_s


@cached_if_short(entries=4096)
def span_s(text: str) -> float | None:
    """Return seconds of ``[days-][hours:]minutes:seconds``, or None for other texts.

    >>> span_s("1-06:00:00")
    108000.0
    """
    match = _SPAN.fullmatch(text)
    if match is None:
        return None
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds)


@cached_if_short(entries=4096)
def limit_s(text: str) -> float | None:
    """Return seconds of a time limit: a span, or whole minutes. None for ``UNLIMITED`` etc.

    >>> limit_s("1440"), limit_s("Partition_Limit")
    (86400.0, None)
    """
    if _WHOLE.fullmatch(text):
        minutes = int(text)
        return minutes * 60.0 if 0 < minutes <= _MAX_LIMIT_MIN else None
    return span_s(text) or None
