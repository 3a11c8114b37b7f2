"""What is certain from the start: log-ins, log-outs, reboots, submissions and kills, in order.

All of it is known when a trace is opened, so it is computed and sorted once, in columns. What
depends on decisions (starts and ends of runs) is merged in later, by `outrider.virtual.site`.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from outrider.model.events import (
    OWNER_CAME,
    OWNER_WENT,
    REBOOTED,
    REMOVED,
    SUBMITTED,
    USABLE,
)
from outrider.model.localtime import DAY_S, TraceTime
from outrider.virtual.campus import Campus, Floats, Ints

_CHUNK = 16_384


@dataclass(slots=True)
class OwnerStretches:
    """When an owner sat at a machine: sessions of one machine that overlap or touch are one.

    Sorted by machine, then time; `first[m]` to `first[m + 1]` are the stretches of machine m.
    """

    machine: Ints
    came_s: Floats
    went_s: Floats
    first: NDArray[np.int64]


def owner_stretches(campus: Campus) -> OwnerStretches:
    """Merge owner sessions into stretches."""
    order = np.lexsort((campus.login_s, campus.session_machine))
    machine = campus.session_machine[order]
    login, logout = campus.login_s[order], campus.logout_s[order]
    apart = np.float64(max(campus.span_s, 1.0) * 2.0)
    reach = np.maximum.accumulate(logout + machine * apart)
    begins = np.ones(len(machine), dtype=bool)
    begins[1:] = (login + machine * apart)[1:] > reach[:-1]
    at = np.flatnonzero(begins)
    went = np.maximum.reduceat(logout, at) if at.size else logout[:0]
    machines = machine[at]
    first = np.searchsorted(machines, np.arange(len(campus.machine_names) + 1))
    return OwnerStretches(machines, login[at], went, first)


def reboot_times(campus: Campus) -> Floats:
    """Every nightly reboot within the trace, seconds."""
    if campus.reboot_s is None:
        return np.empty(0)
    start = campus.start
    day_second = start.hour * 3600 + start.minute * 60 + start.second
    first = (campus.reboot_s - day_second) % DAY_S
    return np.arange(first, campus.span_s + 1.0, float(DAY_S))


@dataclass(slots=True)
class Stream:
    """The certain events in columns, by time, then in the order of kinds, then of the files."""

    time_s: Floats
    kind: NDArray[np.int8]
    subject: Ints

    def chunks(self) -> Iterator[Iterable[tuple[float, int, int]]]:
        """Rows as plain tuples, a chunk at a time."""
        for at in range(0, len(self.time_s), _CHUNK):
            part = slice(at, at + _CHUNK)
            yield zip(
                self.time_s[part].tolist(),
                self.kind[part].tolist(),
                self.subject[part].tolist(),
                strict=True,
            )


def certain_events(campus: Campus, stretches: OwnerStretches) -> Stream:
    """All events that do not depend on decisions."""
    reboot_machine, reboot_s = _reboots(campus, stretches)
    killed = np.flatnonzero(~np.isnan(campus.kill_s)).astype(np.int32)
    jobs = np.arange(len(campus.job_names), dtype=np.int32)
    by_kind: list[tuple[int, Ints, Floats]] = [
        (OWNER_WENT, stretches.machine, stretches.went_s),
        (USABLE, *_usable(campus, stretches, stretches.machine, stretches.went_s)),
        (REBOOTED, reboot_machine, reboot_s),
        # a reboot opens the machine at once where there is no delay: after itself, not before
        (USABLE, *_usable(campus, stretches, reboot_machine, reboot_s)),
        (OWNER_CAME, stretches.machine, stretches.came_s),
        (SUBMITTED, jobs, campus.submit_s),
        (REMOVED, killed, campus.kill_s[killed]),
    ]
    time_s = np.concatenate([times for _, _, times in by_kind])
    kind = np.concatenate([np.full(len(times), k, dtype=np.int8) for k, _, times in by_kind])
    subject = np.concatenate([subjects for _, subjects, _ in by_kind]).astype(np.int32)
    order = np.argsort(time_s, kind="stable")
    return Stream(time_s[order], kind[order], subject[order])


def _reboots(campus: Campus, stretches: OwnerStretches) -> tuple[Ints, Floats]:
    """Which machine reboots when: every night, but not while its owner sits there."""
    reboots = reboot_times(campus)
    rebooted = np.ones((len(reboots), len(campus.machine_names)), dtype=bool)
    low = np.searchsorted(reboots, stretches.came_s, side="right")
    high = np.searchsorted(reboots, stretches.went_s, side="left")
    while (inside := low < high).any():
        rebooted[low[inside], stretches.machine[inside]] = False
        low = low + 1
    at, machine = np.nonzero(rebooted)
    return machine.astype(np.int32), reboots[at]


def _usable(
    campus: Campus, stretches: OwnerStretches, machine: Ints, since: Floats
) -> tuple[Ints, Floats]:
    """When idle machines open to jobs, unless an owner or a reboot comes before."""
    clock = TraceTime(campus.start)
    minute = ((since + clock.offset_s) // 60 % (7 * 1440)).astype(np.int64)
    weeks = np.array([np.frombuffer(c.hours.minutes, dtype=np.uint8) for c in campus.clusters])
    is_open = weeks[campus.machine_cluster[machine], minute] == 1
    delay = np.where(is_open, campus.idle_before_job_open_s, campus.idle_before_job_closed_s)
    usable_s = since + delay

    apart = np.float64(max(campus.span_s, 1.0) * 2.0)
    keys = np.append(stretches.came_s + stretches.machine * apart, np.inf)
    following = keys[np.searchsorted(keys, since + machine * apart)] - machine * apart
    reboots = np.append(reboot_times(campus), np.inf)
    next_reboot = reboots[np.searchsorted(reboots, since, side="right")]
    kept = (usable_s < following) & (usable_s < next_reboot)
    return machine[kept], usable_s[kept]
