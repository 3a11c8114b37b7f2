"""Closures of machines: recent ones, their lengths, and draws of coming ones."""

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
# Recent closures of machines to jobs: by owners, reboots and administrators.

KEPT_S: Final = 15 * 86_400.0
MAX_KEPT: Final = 200_000
"""Maximal number of closures kept (30 MB); in a larger pool the period is shorter."""
OWNER: Final = "owner"
REBOOT: Final = "reboot"
RECURRING: Final = (OWNER, REBOOT)
"""Reasons that recur; an administrator is not among them."""
_BY_KIND: Final = {ev.OWNER_CAME: OWNER, ev.REBOOTED: REBOOT, ev.DRAINED: "", ev.LEFT: ""}


class Closure(NamedTuple):
    """Closure of a machine to jobs.

    Attributes:
        machine: its number.
        from_s: its begin, Unix seconds.
        until_s: its end, when jobs could start there again.
        reason: `OWNER`, `REBOOT`, or empty: an administrator, or it was gone.
    """

    machine: int
    from_s: float
    until_s: float
    reason: str


class RecentClosures:
    """Recorder of closures of machines from events.

    Attributes:
        ended: those of the last days, by their ends.
        open: begin and reason of each present closure, by machine.
        evicting: reasons for which runs on a machine that closed were evicted.
    """

    def __init__(self) -> None:
        self.ended: deque[Closure] = deque(maxlen=MAX_KEPT)
        self.open: dict[int, tuple[float, str]] = {}
        self.evicting: set[str] = set()

    def watch(self, event: Event) -> None:
        """Record an event; events must be in the order of time."""
        time_s, kind, subject, extra = event
        if kind in _BY_KIND:
            since_s, reason = self.open.get(subject, (time_s, _BY_KIND[kind]))
            # a drained or absent machine does not come back regularly, even if an owner uses it
            self.open[subject] = since_s, reason if _BY_KIND[kind] else ""
        elif kind == ev.USABLE or (kind == ev.JOINED and extra.usable):
            self._reopen(time_s, subject)
        elif kind == ev.JOINED:
            self.open.setdefault(subject, (time_s, ""))
        elif kind == ev.EVICTED and extra in (OWNER, REBOOT):
            self.evicting.add(extra)

    def kept(self) -> list[tuple[int, float, str]]:
        """Return machines that owners or reboots close now, with begin and reason, by begin."""
        kept = [(m, since_s, why) for m, (since_s, why) in self.open.items() if why in RECURRING]
        return sorted(kept, key=lambda one: one[1])

    def recurring(self) -> list[Closure]:
        """Return ended closures that recur, by begin, except of machines that are shut now."""
        shut = {machine for machine, (_, why) in self.open.items() if why not in RECURRING}
        ended = [one for one in self.ended if one.reason in RECURRING and one.machine not in shut]
        return sorted(ended, key=lambda one: one.from_s)

    def _reopen(self, time_s: float, machine: int) -> None:
        since_s, reason = self.open.pop(machine, (time_s, ""))
        if time_s > since_s:
            self.ended.append(Closure(machine, since_s, time_s, reason))
        while self.ended and self.ended[0].until_s < time_s - KEPT_S:
            self.ended.popleft()


# -- closure lengths -------------------------------------------------------------------------------
# Lengths of present closures, by the lengths of earlier ones.

MIN_CLOSURES: Final = 5
"""Minimal number of longer closures of a machine for drawing from its own."""
_ANY: Final = -1
_SHORTEST_S: Final = 60.0


class ClosureLengths:
    """Draws lengths of closures that have not ended.

    Args:
        closures: those that have ended.
    """

    def __init__(self, closures: Iterable[Closure]) -> None:
        self._closures = closures

    def draw_s(self, machine: int, reason: str, gone_s: float, chance: float) -> float:
        """Draw the whole length of a closure that has lasted for `gone_s`, seconds.

        It is that of one of the machine's longer closures for the same reason. If these are too
        few, it is that of a closure of any machine.

        Args:
            machine: its number.
            reason: of the closure.
            gone_s: time since its begin.
            chance: in [0, 1); selects one.
        """
        for whose, enough in ((machine, MIN_CLOSURES), (_ANY, 1)):
            lengths_s = self._lengths_s.get((whose, reason))
            if lengths_s is not None:
                first = int(np.searchsorted(lengths_s, gone_s, "right"))
                longer = len(lengths_s) - first
                if longer >= enough:
                    return float(lengths_s[first + int(chance * longer)])
        # none lasted for so long: twice the time has a probability of one half
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
# Changes of the usable CPUs in the coming days, where owners close machines.
#
# A closed machine stays so for the length of one of its longer earlier closures. Then closures of
# past days recur, of the same days as the arrivals. Machines that an administrator closed stay
# closed, because that does not recur.

_GRID_S: Final = 60.0
"""Time grid of changes, seconds: a replicate of 28 days has at most 40,000."""
_NOT_AHEAD_S: Final = 60 * DAY_S
"""Closures longer than this last beyond the simulated time, seconds."""
_APART_S: Final = 1e8
"""Offset in time between machines, longer than that, so that their closures do not overlap."""


@dataclass(frozen=True)
class ClosureHistory:
    """Closures of machines in the last days, for reasons that recur.

    Attributes:
        since_s: begin of the known period, Unix seconds; inf: nothing is known.
        ended: those that have ended, by begin.
        open: machines that are closed now, with begin and reason, by begin.
        cpus: CPUs that jobs can use when it is open, by number of each machine in the two.
        goes_behind: whether an evicted job joins the end of the queue.
    """

    since_s: float
    ended: Sequence[Closure]
    open: Sequence[tuple[int, float, str]]
    cpus: dict[int, int]
    goes_behind: bool = False


NOTHING_CLOSED: Final = ClosureHistory(np.inf, (), (), {})


def usable_cpus(site: Machines, machine: int) -> int:
    """Return the CPUs usable if a machine were open; suspended jobs there keep their own."""
    return max(0, site.cpus[machine] - site.busy[machine])


def closure_history(
    closures: RecentClosures, site: Machines, since_s: float, goes_behind: bool
) -> ClosureHistory:
    """Return the recent closures of a site.

    Args:
        closures: of its machines.
        site: its present state.
        since_s: begin of the known period, Unix seconds.
        goes_behind: whether an evicted job joins the end of the queue.
    """
    ended, kept = closures.recurring(), closures.kept()
    cpus = {one.machine: site.cpus[one.machine] for one in ended}
    cpus |= {machine: usable_cpus(site, machine) for machine, *_ in kept}
    return ClosureHistory(since_s, ended, kept, cpus, goes_behind)


class Changes(NamedTuple):
    """Changes of the number of usable CPUs, one replicate after another.

    Attributes:
        at_s: (changes,) time, ascending within a replicate.
        cpus: (changes,) change of the number.
        first: (replicates + 1,) index of the first change of each replicate.
        ends_runs: effect if more CPUs close than are free. True: runs end, and their jobs wait
            behind all others. False: runs continue and the CPUs are taken from the next ends,
            because an evicted job is the first to start again.
    """

    at_s: Floats
    cpus: Floats
    first: Ints
    ends_runs: bool = False


def no_changes(replicates: int) -> Changes:
    """Return no changes: all machines stay as they are."""
    return Changes(np.empty(0), np.empty(0), np.zeros(replicates + 1, np.int64))


def draw_changes(
    now_s: float, history: ClosureHistory, shifts_s: Floats, rng: np.random.Generator
) -> Changes:
    """Draw the changes of each replicate.

    Args:
        now_s: the present moment, Unix seconds.
        history: recent closures.
        shifts_s: (replicates, days) shift in time from the past day to each coming day.
        rng: for the draws.
    """
    replicates = len(shifts_s)
    if not history.cpus:
        return no_changes(replicates)
    lengths, open_n = ClosureLengths(history.ended), len(history.open)
    closures, ongoing = _table(history)
    cpus = np.zeros(max(history.cpus) + 1)
    cpus[list(history.cpus)] = list(history.cpus.values())
    drawn = []
    for days_s in shifts_s:
        closures[ongoing, 2] = [
            since_s + lengths.draw_s(machine, reason, now_s - since_s, chance)
            for (machine, since_s, reason), chance in zip(
                history.open, rng.random(open_n).tolist(), strict=True
            )
        ]
        again = _moved(closures, now_s, days_s)
        drawn.append(_changes(now_s, np.concatenate([closures[ongoing], again]), cpus))
    counts = [len(at_s) for at_s, _ in drawn]
    return Changes(
        np.concatenate([at_s for at_s, _ in drawn]),
        np.concatenate([by for _, by in drawn]),
        np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
        history.goes_behind,
    )


def _table(history: ClosureHistory) -> tuple[Floats, Ints]:
    """Return (closures, 3) machine, begin, end (nan: present) by begin, and present rows."""
    ended = [(one.machine, one.from_s, one.until_s) for one in history.ended]
    ongoing = [(machine, since_s, np.nan) for machine, since_s, _ in history.open]
    closures = np.array(ended + ongoing, dtype=np.float64).reshape(-1, 3)
    closures = closures[closures[:, 1].argsort(kind="stable")]
    return closures, np.isnan(closures[:, 2]).nonzero()[0]


def _moved(closures: Floats, now_s: float, shifts_s: Floats) -> Floats:
    """Return (closures, 3) machine, begin and end of coming ones: past days, shifted."""
    begin_s = now_s + np.arange(len(shifts_s)) * DAY_S - shifts_s
    first = np.searchsorted(closures[:, 1], begin_s, "right")
    counts = np.searchsorted(closures[:, 1], begin_s + DAY_S, "right") - first
    # the rows first, first + 1, ... of each day, one day after the other
    rows = np.arange(counts.sum()) + np.repeat(first - np.cumsum(counts) + counts, counts)
    moved: Floats = closures[rows]
    moved[:, 1:] += np.repeat(shifts_s, counts)[:, None]
    return moved


def _changes(now_s: float, closures: Floats, cpus: Floats) -> tuple[Floats, Floats]:
    """Return times and amounts of changes of CPUs; overlapping closures of a machine are merged.

    Args:
        now_s: the present moment, Unix seconds.
        closures: (closures, 3) machine, begin and end, by begin.
        cpus: (machines,) usable CPUs of each when it is open.
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
    is_ahead = closes_s > 0.0  # others are closed already
    minute = np.rint(np.concatenate([closes_s[is_ahead], opens_s]) / _GRID_S).astype(np.int64)
    minute = np.maximum(minute, 1)  # none has ended yet
    by = np.concatenate([-cpus[machine[is_first]][is_ahead], cpus[machine[is_last]]])
    total = np.bincount(minute, weights=by).astype(np.float64)
    (changes,) = total.nonzero()
    return now_s + _GRID_S * changes.astype(np.float64), total[changes]
