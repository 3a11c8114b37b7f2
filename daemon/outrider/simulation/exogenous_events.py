"""Events that do not depend on decisions: log-ins, log-outs, reboots, submissions and kills.

All are known when a trace is opened, so they are computed and sorted once, in columns. Events
that follow from decisions (starts and ends of runs) are merged in by `campus_site`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.formats.campus.campus import Campus, Floats, Ints
from outrider.model.events import (
    OWNER_CAME,
    OWNER_WENT,
    REBOOTED,
    REMOVED,
    SUBMITTED,
    USABLE,
    Event,
)
from outrider.model.jobs import JobSpec
from outrider.model.localtime import DAY_S, TraceTime
from outrider.model.machines import MINUTES_A_WEEK

_CHUNK = 16_384


@dataclass(slots=True)
class OwnerIntervals:
    """Intervals with an owner at a machine; overlapping or touching sessions are merged.

    Sorted by machine, then time; rows `first[m]` to `first[m + 1]` are those of machine m.
    """

    machine: Ints
    came_s: Floats
    went_s: Floats
    first: NDArray[np.int64]


def owner_intervals(campus: Campus) -> OwnerIntervals:
    """Merge the owner sessions of each machine into disjoint intervals."""
    order = np.lexsort((campus.login_s, campus.session_machine))
    machine = campus.session_machine[order]
    login, logout = campus.login_s[order], campus.logout_s[order]
    begins = np.ones(len(machine), dtype=bool)
    begins[1:] = (machine[1:] != machine[:-1]) | (login[1:] > logout[:-1])
    if not begins.all():
        begins = _begins_of_merged_intervals(machine, login, logout)
    at = np.flatnonzero(begins)
    went = np.maximum.reduceat(logout, at) if at.size else logout[:0]
    machines = machine[at]
    first = np.searchsorted(machines, np.arange(len(campus.machine_names) + 1))
    return OwnerIntervals(machines, login[at], went, first)


def _begins_of_merged_intervals(machine: Ints, login: Floats, logout: Floats) -> NDArray[np.bool_]:
    """Return the mask of the sessions that begin a merged interval of their machine.

    No earlier session of the machine lasts until then.

    Compares ranks of times, offset by machine. Ranks are whole numbers, so neither a large pool
    nor a long trace loses precision.
    """
    times, rank = np.unique(np.concatenate([login, logout]), return_inverse=True)
    came, went = rank[: len(login)], rank[len(login) :]
    offset = machine.astype(np.int64) * (len(times) + 1)
    reach = np.maximum.accumulate(went + offset)
    begins = np.ones(len(machine), dtype=bool)
    begins[1:] = (came + offset)[1:] > reach[:-1]
    return begins


def reboot_times(campus: Campus) -> Floats:
    """Return every nightly reboot within the trace, seconds."""
    if campus.reboot_s is None:
        return np.empty(0)
    start = campus.start
    day_second = start.hour * 3600 + start.minute * 60 + start.second
    first = (campus.reboot_s - day_second) % DAY_S
    return np.arange(first, campus.span_s + 1.0, float(DAY_S))


@dataclass(slots=True)
class ExogenousEvents:
    """Event columns sorted by time, then by kind, then in file order.

    Attributes:
        time_s, kind, subject: (events,) columns; the subject is a machine or job number.
        specs: the distinct job specifications.
        job_spec: (jobs,) index into `specs`.
        until_s: later events are left out.
    """

    time_s: Floats
    kind: NDArray[np.int8]
    subject: Ints
    specs: NDArray[np.object_]
    job_spec: NDArray[np.int64]
    until_s: float

    def events(self) -> Iterator[Event]:
        """Return an iterator over all events, in order."""
        return chain.from_iterable(self._chunks())

    def _chunks(self) -> Iterator[Iterable[Event]]:
        for at in range(0, len(self.time_s), _CHUNK):
            part = slice(at, at + _CHUNK)
            kind, subject = self.kind[part], self.subject[part]
            yield zip(
                self.time_s[part].tolist(),
                kind.tolist(),
                subject.tolist(),
                self._extras(kind, subject),
                strict=True,
            )

    def _extras(self, kind: NDArray[np.int8], subject: Ints) -> list[Any]:
        extras = np.full(len(kind), None)
        submitted = kind == SUBMITTED
        extras[submitted] = self.specs[self.job_spec[subject[submitted]]]
        extras[kind == REMOVED] = "killed"
        found: list[Any] = extras.tolist()
        return found


def exogenous_events(campus: Campus, intervals: OwnerIntervals, until_s: float) -> ExogenousEvents:
    """Return all events up to `until_s` that do not depend on decisions."""
    reboot_machine, reboot_s, reboot_login = _reboots(campus, intervals)
    next_login = _next_logins(intervals)
    killed = np.flatnonzero(~np.isnan(campus.kill_s)).astype(np.int32)
    jobs = np.arange(len(campus.job_names), dtype=np.int32)
    stayed = intervals.went_s > intervals.came_s
    left, left_s = intervals.machine[stayed], intervals.went_s[stayed]
    no_length, no_length_s = intervals.machine[~stayed], intervals.went_s[~stayed]
    by_kind: list[tuple[int, Ints, Floats]] = [
        (OWNER_WENT, left, left_s),
        (USABLE, *_usable(campus, left, left_s, next_login[stayed])),
        (REBOOTED, reboot_machine, reboot_s),
        # without a delay a reboot opens the machine at the same time: USABLE must follow it
        (USABLE, *_usable(campus, reboot_machine, reboot_s, reboot_login)),
        (OWNER_CAME, intervals.machine, intervals.came_s),
        # a log-out at the time of its log-in must follow it
        (OWNER_WENT, no_length, no_length_s),
        (USABLE, *_usable(campus, no_length, no_length_s, next_login[~stayed])),
        (SUBMITTED, jobs, campus.submit_s),
        (REMOVED, killed, campus.kill_s[killed]),
    ]
    time_s = np.concatenate([times for _, _, times in by_kind])
    kind = np.concatenate([np.full(len(times), k, dtype=np.int8) for k, _, times in by_kind])
    subject = np.concatenate([subjects for _, subjects, _ in by_kind]).astype(np.int32)
    order = np.argsort(time_s, kind="stable")
    order = order[: np.searchsorted(time_s, until_s, side="right", sorter=order)]
    return ExogenousEvents(time_s[order], kind[order], subject[order], *job_specs(campus), until_s)


def _reboots(campus: Campus, intervals: OwnerIntervals) -> tuple[Ints, Floats, Floats]:
    """Return the nightly reboots of every machine, except while an owner is logged in.

    Returns:
        (reboots,) machine, time, and time of the machine's next log-in (inf if none).
    """
    nights = reboot_times(campus)
    rebooted = np.ones((len(nights), len(campus.machine_names)), dtype=bool)
    came_night = np.searchsorted(nights, intervals.came_s, side="right")
    low = came_night
    high = np.searchsorted(nights, intervals.went_s, side="left")
    while (inside := low < high).any():
        rebooted[low[inside], intervals.machine[inside]] = False
        low = low + 1
    night, machine = np.nonzero(rebooted)
    # whole-number sort keys: the machine, then the night after which the interval begins
    place = len(nights) + 1
    keys = intervals.machine.astype(np.int64) * place + came_night
    following = np.searchsorted(keys, machine * place + night + 1)
    return machine.astype(np.int32), nights[night], _came_at(intervals, following, machine)


def _next_logins(intervals: OwnerIntervals) -> Floats:
    """Return the log-in of the same machine's next interval (intervals,); inf after its last."""
    return _came_at(intervals, np.arange(1, len(intervals.machine) + 1), intervals.machine)


def _came_at(
    intervals: OwnerIntervals, at: NDArray[np.int64], machine: NDArray[np.integer[Any]]
) -> Floats:
    """Return the log-ins of the intervals at rows `at`; inf where the machine differs."""
    machines = np.append(intervals.machine, -1)
    came = np.append(intervals.came_s, np.inf)
    return np.where(machines[at] == machine, came[at], np.inf)


def _usable(
    campus: Campus, machine: Ints, since: Floats, next_login: Floats
) -> tuple[Ints, Floats]:
    """Return when idle machines become usable, unless a log-in or reboot comes first.

    Args:
        campus: gives delays, opening hours and reboots.
        machine: (n,) idle machines.
        since: (n,) when each became idle.
        next_login: (n,) time of its next log-in; inf for never.

    Returns:
        machines and times, of those that become usable.
    """
    clock = TraceTime(campus.start)
    minute = ((since + clock.offset_s) // 60 % MINUTES_A_WEEK).astype(np.int64)
    weeks = np.frombuffer(b"".join(c.hours.minutes for c in campus.clusters), dtype=np.uint8)
    week = campus.machine_cluster[machine].astype(np.int64) * MINUTES_A_WEEK
    is_open = weeks[week + minute] == 1
    delay = np.where(is_open, campus.idle_before_job_open_s, campus.idle_before_job_closed_s)
    usable_s = since + delay
    reboots = np.append(reboot_times(campus), np.inf)
    next_reboot = reboots[np.searchsorted(reboots, since, side="right")]
    kept = (usable_s < next_login) & (usable_s < next_reboot)
    return machine[kept], usable_s[kept]


# -- job specs -------------------------------------------------------------------------------------
# Declarations of a campus's jobs: one specification for all jobs with the same declaration.


def job_specs(campus: Campus) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """Return the distinct specifications, and an index (jobs,) into them, without run times."""
    kinds, job_kind = _kinds(campus)
    specs = np.empty(len(kinds), dtype=object)
    for at, job in enumerate(kinds.tolist()):
        user, vo = campus.user_names[campus.user[job]], campus.vo_names[campus.vo[job]]
        specs[at] = JobSpec(user=user, vo=vo, **dict(_requested(campus, job)))
    return specs, job_kind


def _kinds(campus: Campus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the first job of each kind, and the kind of each job (jobs,)."""
    columns: list[NDArray[Any]] = [campus.user, campus.vo]
    if campus.requests is not None:
        asked = campus.requests
        columns += [asked.cpus, asked.memory_mib, asked.gpus]
    if campus.only is not None:
        columns.append(np.array(campus.only, dtype=object))
    if campus.estimate_s is not None:
        columns.append(campus.estimate_s)
    job_kind = np.zeros(len(campus.job_names), dtype=np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        job_kind = np.unique(job_kind * max(1, len(values)) + number, return_inverse=True)[1]
    first = np.unique(job_kind, return_index=True)[1]
    return first, job_kind


def _requested(campus: Campus, job: int) -> Iterator[tuple[str, Any]]:
    """Yield what a job requests besides one CPU of any machine."""
    if campus.requests is not None:
        yield "cpus", int(campus.requests.cpus[job])
        yield "resources", campus.requests.requested(job)
    if campus.only is not None:
        yield "eligible", campus.only[job]
    if campus.estimate_s is not None and not np.isnan(campus.estimate_s[job]):
        yield "estimate_s", float(campus.estimate_s[job])
