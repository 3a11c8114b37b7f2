"""Closures of machines: those of the last days, how long they lasted, and those to come."""

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Final, NamedTuple

import numpy as np

from outrider.engine.state.machines import Machines
from outrider.forecast.queue_state import Floats, Ints
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.localtime import DAY_S

# -- recent closures -------------------------------------------------------------------------------
# When machines were closed to jobs lately: by owners, reboots and administrators.

KEPT_S: Final = 15 * 86_400.0
MOST_KEPT: Final = 200_000
"""Closures of a pool with so many are kept for less long: 30 MB."""
OWNER: Final = "owner"
REBOOT: Final = "reboot"
HABITS: Final = (OWNER, REBOOT)
"""Reasons that come again; what an administrator does is none."""
_BY_KIND: Final = {ev.OWNER_CAME: OWNER, ev.REBOOTED: REBOOT, ev.DRAINED: "", ev.LEFT: ""}


class Closure(NamedTuple):
    """A machine was closed to jobs.

    Attributes:
        machine: its number.
        from_s: since when, Unix seconds.
        until_s: when jobs could start there again.
        reason: `OWNER`, `REBOOT`, or empty: an administrator, or it was gone.
    """

    machine: int
    from_s: float
    until_s: float
    reason: str


class RecentClosures:
    """Gathers closures of machines as events pass.

    Attributes:
        ended: those of the last days, by the time at which they ended.
        open: since when each machine that is closed now is, and why.
        evicting: reasons for which runs on a machine that closed were evicted.
    """

    def __init__(self) -> None:
        self.ended: deque[Closure] = deque(maxlen=MOST_KEPT)
        self.open: dict[int, tuple[float, str]] = {}
        self.evicting: set[str] = set()

    def watch(self, event: Event) -> None:
        """Look at an event, after those before it."""
        time_s, kind, subject, extra = event
        if kind in _BY_KIND:
            since_s, reason = self.open.get(subject, (time_s, _BY_KIND[kind]))
            # a machine that was drained or has left comes back by no habit, whoever sits at it
            self.open[subject] = since_s, reason if _BY_KIND[kind] else ""
        elif kind == ev.USABLE or (kind == ev.JOINED and extra.usable):
            self._reopen(time_s, subject)
        elif kind == ev.JOINED:
            self.open.setdefault(subject, (time_s, ""))
        elif kind == ev.EVICTED and extra in (OWNER, REBOOT):
            self.evicting.add(extra)

    def kept(self) -> list[tuple[int, float, str]]:
        """Machines that an owner or a reboot keeps now, since when, and which, in that order."""
        kept = [(m, since_s, why) for m, (since_s, why) in self.open.items() if why in HABITS]
        return sorted(kept, key=lambda one: one[1])

    def habitual(self) -> list[Closure]:
        """Those that have ended and come again, by begin, but for machines that are shut now."""
        shut = {machine for machine, (_, why) in self.open.items() if why not in HABITS}
        ended = [one for one in self.ended if one.reason in HABITS and one.machine not in shut]
        return sorted(ended, key=lambda one: one.from_s)

    def _reopen(self, time_s: float, machine: int) -> None:
        since_s, reason = self.open.pop(machine, (time_s, ""))
        if time_s > since_s:
            self.ended.append(Closure(machine, since_s, time_s, reason))
        while self.ended and self.ended[0].until_s < time_s - KEPT_S:
            self.ended.popleft()


# -- closure lengths -------------------------------------------------------------------------------
# How long a machine that is closed to jobs now will stay so, by how long it was before.

ENOUGH: Final = 5
"""With so many closures that lasted longer, a machine's own tell how long this one will."""
_ANY: Final = -1
_SHORTEST_S: Final = 60.0


class ClosureLengths:
    """Draws lengths of closures that go on.

    Args:
        closures: those that have ended.
    """

    def __init__(self, closures: Iterable[Closure]) -> None:
        self._closures = closures

    def draw_s(self, machine: int, reason: str, gone_s: float, chance: float) -> float:
        """The whole length of a closure that has lasted for `gone_s`, seconds.

        As long as one of the machine's closures for the same reason that lasted longer; where it
        has few, as one of any machine.

        Args:
            machine: its number.
            reason: why it is closed.
            gone_s: for how long it has been.
            chance: in [0, 1); picks one.
        """
        for whose, enough in ((machine, ENOUGH), (_ANY, 1)):
            lengths_s = self._lengths_s.get((whose, reason))
            if lengths_s is not None:
                first = int(np.searchsorted(lengths_s, gone_s, "right"))
                longer = len(lengths_s) - first
                if longer >= enough:
                    return float(lengths_s[first + int(chance * longer)])
        # none lasted for so long: as much again is as likely as not
        return max(gone_s, _SHORTEST_S) / max(chance, 0.01)

    @cached_property
    def _lengths_s(self) -> dict[tuple[int, str], Floats]:
        """Ascending lengths of closures by machine and reason, `_ANY` for all machines."""
        lengths: dict[tuple[int, str], list[float]] = {}
        for closure in self._closures:
            for whose in (closure.machine, _ANY):
                length_s = closure.until_s - closure.from_s
                lengths.setdefault((whose, closure.reason), []).append(length_s)
        return {key: np.sort(np.array(values)) for key, values in lengths.items()}


# -- closures ahead --------------------------------------------------------------------------------
# How the CPUs that jobs may use change in the days to come, where owners take machines back.
#
# A machine that is closed now stays so for as long as one of its earlier closures did that lasted
# longer; then closures of past days come again, of the same days as the arrivals. What an
# administrator closed stays closed: that is no habit.

_GRID_S: Final = 60.0
"""Changes are at a multiple of it from now on: a replicate of 28 days has 40,000 at most."""
_NOT_AHEAD_S: Final = 60 * DAY_S
"""What stays closed for so long stays so beyond what is simulated."""
_APART_S: Final = 1e8
"""Longer than that: closures of two machines that stand so far apart do not overlap."""


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
    """Return where all machines stay as they are."""
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
    lengths, open_n = ClosureLengths(lately.ended), len(lately.open)
    closures, goes_on = _table(lately)
    cpus = np.zeros(max(lately.cpus) + 1)
    cpus[list(lately.cpus)] = list(lately.cpus.values())
    drawn = []
    for days_s in shifts_s:
        closures[goes_on, 2] = [
            since_s + lengths.draw_s(machine, reason, now_s - since_s, chance)
            for (machine, since_s, reason), chance in zip(
                lately.open, rng.random(open_n).tolist(), strict=True
            )
        ]
        again = _moved(closures, now_s, days_s)
        drawn.append(_changes(now_s, np.concatenate([closures[goes_on], again]), cpus))
    counts = [len(at_s) for at_s, _ in drawn]
    return Changes(
        np.concatenate([at_s for at_s, _ in drawn]),
        np.concatenate([by for _, by in drawn]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        lately.goes_behind,
    )


def _table(lately: ClosuresLately) -> tuple[Floats, Ints]:
    """(closures, 3) machine, begin and end (nan: it goes on) by begin, and which rows go on."""
    ended = [(one.machine, one.from_s, one.until_s) for one in lately.ended]
    goes_on = [(machine, since_s, np.nan) for machine, since_s, _ in lately.open]
    closures = np.array(ended + goes_on, dtype=np.float64).reshape(-1, 3)
    closures = closures[closures[:, 1].argsort(kind="stable")]
    return closures, np.isnan(closures[:, 2]).nonzero()[0]


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
    """Return when CPUs come and go, and how many; where closures of a machine overlap, they are one.

    Args:
        now_s: the present moment, Unix seconds.
        closures: (closures, 3) machine, begin and end, by begin.
        cpus: (machines,) that jobs can use when it is open.
    """
    machine = closures[:, 0].astype(np.min_scalar_type(len(cpus)))  # short numbers sort quickly
    order = machine.argsort(kind="stable")
    machine, apart_s = machine[order], machine[order] * _APART_S
    from_s = closures[order, 1] - now_s
    until_s = np.minimum(closures[order, 2] - now_s, _NOT_AHEAD_S)
    latest_s = np.maximum.accumulate(until_s + apart_s)  # of this machine, so far
    is_first = np.ones(len(order), np.bool_)
    is_first[1:] = from_s[1:] + apart_s[1:] > latest_s[:-1]
    is_last = np.roll(is_first, -1)
    closes_s, opens_s = from_s[is_first], (latest_s - apart_s)[is_last]
    is_ahead = closes_s > 0.0  # else it is closed already
    minute = np.rint(np.concatenate([closes_s[is_ahead], opens_s]) / _GRID_S).astype(np.int64)
    minute = np.maximum(minute, 1)  # none is over yet
    by = np.concatenate([-cpus[machine[is_first]][is_ahead], cpus[machine[is_last]]])
    total = np.bincount(minute, weights=by).astype(np.float64)
    (changes,) = total.nonzero()
    return now_s + _GRID_S * changes.astype(np.float64), total[changes]
