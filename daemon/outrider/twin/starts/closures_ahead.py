"""How the CPUs that jobs may use change in the days to come, where owners take machines back.

A machine that is closed now stays so for as long as one of its earlier closures did that lasted
longer; then closures of past days come again, of the same days as the arrivals. What an
administrator closed stays closed: that is no habit.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np

from outrider.engine.state.machines import Machines
from outrider.model.localtime import DAY_S
from outrider.twin.starts.closure_lengths import ClosureLengths
from outrider.twin.starts.queue_state import Floats, Ints
from outrider.twin.starts.recent_closures import Closure, RecentClosures

_GRID_S: Final = 60.0
"""Changes within so long are one, at its end: a replicate of 28 days has 40,000 at most."""
_APART_S: Final = 1e9
"""Longer than anything that is drawn: machines that stand so far apart do not overlap."""


@dataclass(frozen=True)
class ClosuresLately:
    """When machines were closed to jobs in the last days, for reasons that come again.

    Attributes:
        since_s: from when on they are known, Unix seconds; inf: nothing is.
        ended: those that have ended, by the time at which they began.
        open: machines that are closed now, since when, and why, in that order of time.
        cpus: of each machine of the two that jobs can use when it is open, by number.
        goes_behind: whether a job that is evicted joins the end of the queue.
    """

    since_s: float
    ended: Sequence[Closure]
    open: Sequence[tuple[int, float, str]]
    cpus: dict[int, int]
    goes_behind: bool = False


NOTHING_CLOSED: Final = ClosuresLately(np.inf, (), (), {})


def usable_cpus(site: Machines, machine: int) -> int:
    """CPUs that jobs could use were a machine open: a job that is suspended there keeps its own."""
    return max(0, site.cpus[machine] - site.busy[machine])


def closures_lately(
    closures: RecentClosures, site: Machines, since_s: float, goes_behind: bool
) -> ClosuresLately:
    """What is known of a site now.

    Args:
        closures: of its machines.
        site: as it is.
        since_s: from when on they are known, Unix seconds.
        goes_behind: whether a job that is evicted joins the end of the queue.
    """
    ended, kept = closures.habitual(), closures.kept()
    cpus = {one.machine: site.cpus[one.machine] for one in ended}
    cpus |= {machine: usable_cpus(site, machine) for machine, *_ in kept}
    return ClosuresLately(since_s, ended, kept, cpus, goes_behind)


class Changes(NamedTuple):
    """By how much the CPUs that jobs may use change, replicate after replicate.

    Attributes:
        at_s: (changes,) when, ascending within a replicate.
        cpus: (changes,) by how many.
        first: (replicates + 1,) place of the first of each replicate.
        ends_runs: what happens where more go than are free. True: runs end, and their jobs wait
            behind all others. False: runs go on, and the next ends pay for it, for whoever was
            evicted is the first to start again.
    """

    at_s: Floats
    cpus: Floats
    first: Ints
    ends_runs: bool = False


def no_changes(replicates: int) -> Changes:
    """Where all machines stay as they are."""
    return Changes(np.empty(0), np.empty(0), np.zeros(replicates + 1, np.int64))


def draw_changes(
    now_s: float, lately: ClosuresLately, shifts_s: Floats, rng: np.random.Generator
) -> Changes:
    """What changes in each replicate.

    Args:
        now_s: the present moment, Unix seconds.
        lately: what was closed.
        shifts_s: (replicates, days) by how much a past day is moved on to be each day to come.
        rng: chance.
    """
    replicates = len(shifts_s)
    if not lately.cpus:
        return no_changes(replicates)
    lengths, ended = ClosureLengths(lately.ended), _rows(lately.ended)
    cpus = np.zeros(max(lately.cpus) + 1)
    cpus[list(lately.cpus)] = list(lately.cpus.values())
    drawn = []
    for days_s in shifts_s:
        goes_on = _rows(
            (machine, since_s, since_s + lengths.draw_s(machine, reason, now_s - since_s, chance))
            for (machine, since_s, reason), chance in zip(
                lately.open, rng.random(len(lately.open)).tolist(), strict=True
            )
        )
        again = [_moved(closures, now_s, days_s) for closures in (ended, goes_on)]
        drawn.append(_changes(now_s, np.concatenate([goes_on, *again]), cpus))
    counts = [len(at_s) for at_s, _ in drawn]
    return Changes(
        np.concatenate([at_s for at_s, _ in drawn]),
        np.concatenate([by for _, by in drawn]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        lately.goes_behind,
    )


def _rows(closures: Iterable[Sequence[object]]) -> Floats:
    """(closures, 3) machine, begin and end."""
    return np.array([one[:3] for one in closures], dtype=np.float64).reshape(-1, 3)


def _moved(closures: Floats, now_s: float, shifts_s: Floats) -> Floats:
    """(closures, 3) machine, begin and end of those that come: past days, moved on."""
    begin_s = now_s + np.arange(len(shifts_s)) * DAY_S - shifts_s
    first = np.searchsorted(closures[:, 1], begin_s, "right")
    counts = np.searchsorted(closures[:, 1], begin_s + DAY_S, "right") - first
    # the rows first, first + 1, ... of each day, one day after the other
    rows = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
    moved: Floats = closures[rows]
    moved[:, 1:] += np.repeat(shifts_s, counts)[:, None]
    return moved


def _changes(now_s: float, closures: Floats, cpus: Floats) -> tuple[Floats, Floats]:
    """When CPUs come and go, and how many; where closures of a machine overlap, they are one."""
    machine, from_s = closures[:, 0], closures[:, 1] - now_s
    until_s = np.minimum(closures[:, 2] - now_s, _APART_S / 2)
    order = np.lexsort((from_s, machine))
    apart_s = machine[order] * _APART_S
    begins, ends = from_s[order] + apart_s, np.maximum.accumulate(until_s[order] + apart_s)
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = begins[1:] > ends[:-1]
    is_last = np.roll(is_first, -1)
    width = cpus[machine[order].astype(np.int64)]
    closes_s = (begins - apart_s)[is_first]
    opens_s = (ends - apart_s)[is_last]
    is_ahead = closes_s > 0.0  # else it is closed already
    minute = np.ceil(np.concatenate([closes_s[is_ahead], opens_s]) / _GRID_S).astype(np.int64)
    by = np.concatenate([-width[is_first][is_ahead], width[is_last]])
    times, place = np.unique(minute, return_inverse=True)
    total = np.bincount(place, weights=by, minlength=len(times))
    return now_s + times[total != 0.0] * _GRID_S, total[total != 0.0]
