"""From a record of a job, in Slurm's words, to what happened."""

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

_MOST_DIGITS: Final = 9
_HALF_A_REPETITION_S: Final = 900.0  # half an hour is the least that a clock is set back
_MOST_NAME_CHARACTERS: Final = 300  # of a job with its cluster


class UnreadableRecordError(ValueError):
    """A record that cannot be read; its text is the reason under which it is counted."""


class Record(NamedTuple):
    """What a record says, each in Slurm's own words, empty where it does not say.

    Attributes:
        job: the job's id, never a step's.
        allocated, requested: CPUs.
        elapsed: span of the run; only looked at where `start` is empty.
        restarts: how often the job was queued again before.
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
    """Tells what happened to jobs, record by record, the older of a job before the later.

    Attributes:
        lost_runs: jobs of which the next record tells whether they went on.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._clock = Clock(options)
        self.lost_runs = LostRuns()

    def tell(self, record: Record) -> list[NamedEvent]:
        """The events of a record: at least one.

        Raises:
            UnreadableRecordError: it makes no sense.
        """
        if len(record.job) > _MOST_NAME_CHARACTERS:
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
        self.lost_runs.heard_of(record.job, last_s if ended else None)
        if not ended:
            return beginning
        if state in EVICTED_FOR:
            return beginning + self._lost(record.job, state, start_s is not None, last_s)
        return [*beginning, ending]

    def _times(
        self, record: Record
    ) -> tuple[float | None, float | None, float | None, float | None]:
        """Submission, eligibility, start of a run (None if there was none) and end."""
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
        if record.nodes in NO_HOSTS:  # a job that never ran may have its end for a start
            start_s = None
        elif not record.start and end_s is not None:
            run_s = span_s(record.elapsed)
            start_s = end_s - run_s if run_s else None
        return submit_s, eligible_s, start_s, end_s

    def _lost(self, job: str, state: str, ran: bool, end_s: float) -> list[NamedEvent]:
        """A run was thrown away; its job may be queued again."""
        reason = EVICTED_FOR[state]
        told: list[NamedEvent] = [(end_s, events.EVICTED, job, reason)] if ran else []
        if state in LOST_RUNS:
            told += self.lost_runs.lost(job, end_s, reason)
        return told


def _removed_for(state: str, ran: bool) -> str:
    """Why a job left undone; empty if it was done."""
    if state == "FAILED" and not ran:
        return "failed_start"
    return REMOVED_FOR.get(state, "")


def _spec(record: Record, since_s: float, eligible_s: float | None) -> JobSpec:
    """What the user said. The VO is the account, else the user's group.

    Slurm's records do not say whether a job was interactive, so that its class is ``batch``.
    """
    return JobSpec(
        user=record.user,
        vo=record.account or record.group or "all",
        cpus=_whole(record.requested) or _whole(record.allocated) or 1,
        estimate_s=limit_s(record.limit),
        eligible_s=eligible_s if eligible_s is not None and eligible_s > since_s else None,
    )


def _whole(digits: str) -> int:
    """The number, or 0 if it is none."""
    plain = digits.isascii() and digits.isdigit() and len(digits) <= _MOST_DIGITS
    return int(digits) if plain else 0


# -- lost runs -------------------------------------------------------------------------------------
# Jobs whose run was lost, and of which nobody said whether Slurm queued them again.

MOST_OPEN: Final = 10_000
"""Of more than these, the job that waits the longest is taken to be gone."""


class LostRuns:
    """Remembers them until a later record of the job says that it went on.

    Those of which no more is heard until the end of the file are taken to have left with their
    run. In a log that goes on growing they stay in the queue.
    """

    def __init__(self) -> None:
        self._open: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def lost(self, job: str, end_s: float, reason: str) -> list[NamedEvent]:
        """A run was lost.

        Returns:
            the removal of another job, if there are too many now.
        """
        known = self._open.get(job)
        if known is None or end_s > known[0]:  # else it is a run that was told of before
            self._open[job] = end_s, reason
        if len(self._open) <= MOST_OPEN:
            return []
        other, (other_end_s, why) = self._open.popitem(last=False)
        return [(other_end_s, events.REMOVED, other, why)]

    def heard_of(self, job: str, end_s: float | None) -> None:
        """A record of the job came; one of a later end, or of none yet, says that it went on."""
        lost = self._open.get(job)
        if lost is not None and (end_s is None or end_s > lost[0]):
            del self._open[job]

    def settle(self) -> list[NamedEvent]:
        """Nothing more will come: the removals of all that are left."""
        removals: list[NamedEvent] = [
            (end_s, events.REMOVED, job, reason) for job, (end_s, reason) in self._open.items()
        ]
        self._open.clear()
        return removals

    def save(self) -> Any:
        """What is remembered, as JSON types."""
        return [[job, end_s, reason] for job, (end_s, reason) in self._open.items()]

    def restore(self, saved: Any) -> None:
        """Go on from what `save` gave."""
        self._open = OrderedDict((job, (end_s, reason)) for job, end_s, reason in saved)


# -- hosts -----------------------------------------------------------------------------------------
# Which machine a run is on, from Slurm's shorthand for many.

UNKNOWN_HOST: Final = "unknown"
"""The machine of a run whose record names none."""
NO_HOSTS: Final = frozenset({"None assigned", "None", "(null)"})
"""What stands in the place of a node list where no node was ever given."""
_FIRST = re.compile(r"(?:[^,\[]|\[[^\]]*\])+")
_PARTS = re.compile(r"\[([^\]]*)\]")
_RANGE = re.compile(r"\[([^\],-]*)[^\]]*\]")


@cached_if_short(entries=16_384)
def first_host(nodes: str) -> str:
    """The first host of a node list, `UNKNOWN_HOST` if it names none.

    >>> first_host("rack[0-1]-n[07,09-12],login1")
    'rack0-n07'
    """
    match = _FIRST.match(nodes)
    return _RANGE.sub(r"\1", match[0]) if match else UNKNOWN_HOST


def hosts_of(nodes: str, most: int = 100_000) -> list[str]:
    """All hosts of a node list, in its order, but no more than `most`.

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
    """The numbers of ``07,09-12``, each as wide as the list writes it."""
    for one in ranges.split(","):
        first, _, last = one.partition("-")
        if first.isdecimal() and last.isdecimal():
            yield from (f"{n:0{len(first)}d}" for n in range(int(first), int(last) + 1))
        else:
            yield one


# -- states ----------------------------------------------------------------------------------------
# What the states of Slurm's job records mean to Outrider.
#
# =================================================  ==============================================
# state                                              here
# =================================================  ==============================================
# ``COMPLETED``, ``FAILED``                          completed: an exit code is the user's business
# ``CANCELLED``, ``CANCELLED by 1000``               removed (``removed``)
# ``TIMEOUT``, ``DEADLINE``, ``OUT_OF_MEMORY``       removed (``killed``)
# ``REQUEUED``, ``REQUEUE_HOLD``, ``REQUEUE_FED``,   evicted (``unknown``), queued again
# ``SPECIAL_EXIT``; ``PENDING`` of jobcomp
# ``PREEMPTED``                                      evicted (``preempted``), see `LOST_RUNS`
# ``NODE_FAIL``                                      evicted (``unknown``), see `LOST_RUNS`
# ``BOOT_FAIL``, ``LAUNCH_FAILED``                   evicted (``failed_start``), see `LOST_RUNS`
# ``PENDING``, ``RUNNING`` and others (`UNENDED`)    not ended: submitted, and started if it was
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
"""States in which a job leaves before it is done, and the reason."""
REQUEUED: Final = "REQUEUED"
REQUEUED_FOR: Final = dict.fromkeys(
    (REQUEUED, "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"), "unknown"
)
"""States of a run that was thrown away while its job was queued again, and the reason."""
LOST_RUNS: Final = {
    "PREEMPTED": "preempted",
    "NODE_FAIL": "unknown",
    "BOOT_FAIL": "failed_start",
    "LAUNCH_FAILED": "failed_start",
}
"""States of a run that was thrown away, and the reason. The record is the same whether Slurm
queued the job again (``PreemptMode=REQUEUE``, ``JobRequeue=1``) or not: only a later record of
the job tells."""
UNENDED: Final = frozenset(
    {
        "PENDING",
        "RUNNING",
        "SUSPENDED",
        "CONFIGURING",
        "COMPLETING",
        "RESIZING",  # the record of a stretch before the job gave up, or got, nodes
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
# What Slurm calls the states of jobs. One that is held is PENDING there, with a reason.

STATE_WORDS: Final = MappingProxyType(
    {"queued": "PENDING", "running": "RUNNING", "suspended": "SUSPENDED", "held": "PENDING"}
)


# -- times -----------------------------------------------------------------------------------------
# Slurm's points in time and spans of time, turned into seconds.

DAY_S: Final = 86_400
_LAST_S: Final = 253_402_300_800  # the year 10,000
_MOST_MINUTES: Final = 4096  # a cache entry is about 100 bytes; older minutes hardly come again
_MOST_LIMIT_MIN: Final = 4_294_967_293  # above it are Slurm's NO_VAL and INFINITE
_UNSET: Final = frozenset({"", "unknown", "none", "invalid", "n/a"})
_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d):([0-5]\d|60)(?:\.\d{1,9})?(Z|[+-]\d\d:?\d\d)?", re.ASCII
)
_SPAN = re.compile(r"(?:(\d{1,9})-)?(?:(\d{1,9}):)?(\d{1,9}):(\d\d)(?:\.\d{1,9})?", re.ASCII)
_WHOLE = re.compile(r"\d{1,18}", re.ASCII)


class Clock:
    """Turns points in time into Unix seconds.

    Slurm writes the local time of whoever printed it (``sacct``: the shell's, jobcomp: the
    controller's) and names no zone. It is taken to be local time of `options.timezone`, and UTC
    where that is None; of an hour that comes twice, the first is meant unless that would be too
    early (see `at`). A time that does name its zone, and Unix seconds
    (``SLURM_TIME_FORMAT=%s``), are taken at their word.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    def __init__(self, options: ReaderOptions) -> None:
        self._zone = options.zone()
        self._minutes: dict[str, float] = {}
        self._again: dict[str, float] = {}  # minutes that come twice: when they come again

    def at(self, text: str, after_s: float | None = None) -> float | None:
        """Unix seconds, or None where the time was never set (``Unknown``, the first of 1970).

        Args:
            text: in Slurm's words.
            after_s: the time cannot be before this: of an hour that comes twice it is then the
                second.

        Raises:
            ValueError: it is no time.
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
            raise ValueError(f'"{text}" is no time; expected "2026-11-21T03:17:00"')
        if time_s >= _LAST_S:
            raise ValueError(f'"{text}" is too far away')
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
                raise ValueError(f'"{minute}" is too far away') from error
            if len(self._minutes) >= _MOST_MINUTES:
                self._minutes.clear()
                self._again.clear()
            self._minutes[minute] = start_s
            if again is not None:
                self._again[minute] = again
        return start_s


@cached_if_short(entries=4096)
def span_s(text: str) -> float | None:
    """Seconds of ``[days-][hours:]minutes:seconds``, or None if it is none.

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
    """Seconds of a time limit: a span, or whole minutes. None for ``UNLIMITED`` and the like.

    >>> limit_s("1440"), limit_s("Partition_Limit")
    (86400.0, None)
    """
    if _WHOLE.fullmatch(text):
        minutes = int(text)
        return minutes * 60.0 if 0 < minutes <= _MOST_LIMIT_MIN else None
    return span_s(text) or None
