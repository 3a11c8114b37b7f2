"""Owner sessions: a renewal process per seat, so that sessions of one machine never overlap."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model.localtime import WEEK_S
from outrider.simulation.generators.campus.demand import SLOT_S, Demand
from outrider.simulation.generators.campus.rooms import Rooms

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

QUICK_SHARE: Final = 0.236
QUICK_MEDIAN_S: Final = 4.3 * 60
QUICK_SPREAD: Final = 0.90
LONG_MEDIAN_S: Final = 53.7 * 60
LONG_SPREAD: Final = 0.91
CLASS_MEAN_S: Final = 50.0 * 60
CLASS_SPREAD_S: Final = 6.0 * 60
SHORTEST_S: Final = 60.0
CHANGEOVER_S: Final = 20.0
"""Least time between a log-out and the next log-in at the same machine."""
EMPTYING_S: Final = 300.0
"""Time before closing over which the last log-outs of a room are spread."""


class Sessions(NamedTuple):
    """(sessions,) machine, log-in and log-out in seconds, by log-in."""

    machine: Ints
    login_s: Floats
    logout_s: Floats


def draw_sessions(
    rooms: Rooms, demand: Demand, span_s: float, rng: np.random.Generator
) -> Sessions:
    """Draw the sessions of all seats; each step draws the next session of every seat.

    The next log-in is where the integral of the hazard since the last log-out reaches an
    exponential draw: exact for a hazard that is constant within a slot. Every step draws for
    all seats, so that a longer trace begins with the same sessions as a shorter one.
    """
    clock = _Clock(rooms, demand)
    stay = _Stay(rooms, demand)
    seats = np.arange(len(rooms.names))
    free_s = np.zeros(len(seats))
    found: list[Sessions] = []
    while seats.size:
        threshold = rng.exponential(size=len(free_s))
        chance = rng.random((2, len(free_s)))
        normal = rng.standard_normal(len(free_s))
        login = clock.next_login_s(seats, free_s[seats], threshold[seats] / demand.seat[seats])
        login = np.floor(login * 10) / 10  # rounding up could pass the closing time
        kept = login < span_s
        seats, login = seats[kept], login[kept]
        logout = stay.until_s(seats, login, chance[:, seats], normal[seats])
        found.append(Sessions(seats.astype(np.int32), login, np.minimum(logout, span_s)))
        free_s[seats] = logout + CHANGEOVER_S
    columns = [np.concatenate(column) for column in zip(*found, strict=True)] if found else []
    order = np.argsort(columns[1], kind="stable")
    return Sessions(*(column[order] for column in columns))


class _Clock:
    """Cumulative hazards of all clusters in one array, so that one search serves all seats."""

    def __init__(self, rooms: Rooms, demand: Demand) -> None:
        self.cluster = rooms.cluster
        self.knots = len(demand.daily) * (86_400 // SLOT_S) + 1
        clusters = len(rooms.specs)
        self.cumulative = np.empty(clusters * self.knots)
        offset = 0.0
        for cluster in range(clusters):
            part = self.cumulative[cluster * self.knots : (cluster + 1) * self.knots]
            part[:] = demand.cumulative(cluster)
            part += offset
            offset = float(part[-1]) + 1.0

    def next_login_s(self, seats: NDArray[np.int64], free_s: Floats, wait: Floats) -> Floats:
        """When the hazard since `free_s` sums to `wait`; inf if the trace ends before."""
        first = self.cluster[seats].astype(np.int64) * self.knots
        slot, part = np.divmod(free_s / SLOT_S, 1.0)
        low = np.minimum(slot.astype(np.int64), self.knots - 2) + first
        now = self.cumulative[low] + part * (self.cumulative[low + 1] - self.cumulative[low])
        goal = now + wait
        over = (goal >= self.cumulative[first + self.knots - 1]) | (slot >= self.knots - 1)
        low = (
            np.searchsorted(
                self.cumulative, np.where(over, self.cumulative[first], goal), side="right"
            )
            - 1
        )
        step = self.cumulative[np.minimum(low + 1, len(self.cumulative) - 1)] - self.cumulative[low]
        inside = (goal - self.cumulative[low]) / np.where(step > 0, step, 1.0)
        return np.where(over, np.inf, (low - first + inside) * SLOT_S)


class _Stay:
    """Lengths of sessions: short, long or a class; never past closing time."""

    def __init__(self, rooms: Rooms, demand: Demand) -> None:
        self.cluster = rooms.cluster
        self.class_share = demand.class_share()
        self.term = demand.term
        self.offset_s = demand.weekday * 86_400
        minutes = np.array([np.frombuffer(spec.hours.minutes, np.uint8) for spec in rooms.specs])
        self.closes_s = np.array([_seconds_to_closing(week) for week in minutes])

    def until_s(
        self, seats: NDArray[np.int64], login_s: Floats, chance: Floats, normal: Floats
    ) -> Floats:
        """(n,) log-out times, from (2, n) uniform and (n,) normal draws."""
        cluster = self.cluster[seats]
        week_s = (login_s + self.offset_s) % WEEK_S
        slot = (week_s // SLOT_S).astype(np.int64)
        day = np.minimum((login_s // 86_400).astype(np.int64), len(self.term) - 1)
        taught = self.class_share[cluster, slot] * self.term[day]
        in_class = chance[0] < taught
        quick = ~in_class & (chance[0] < taught + (1 - taught) * QUICK_SHARE)
        casual = np.where(
            quick,
            QUICK_MEDIAN_S * np.exp(QUICK_SPREAD * normal),
            LONG_MEDIAN_S * np.exp(LONG_SPREAD * normal),
        )
        stay = np.where(in_class, CLASS_MEAN_S + CLASS_SPREAD_S * normal, casual)
        stay = np.maximum(stay, SHORTEST_S)
        minute = (week_s // 60).astype(np.int64)
        left = self.closes_s[cluster, minute] - week_s % 60
        until_closing = left - np.minimum(EMPTYING_S, left) * chance[1]
        logout_s: Floats = np.maximum(
            login_s, np.round(login_s + np.minimum(stay, until_closing), 1)
        )
        return logout_s


def _seconds_to_closing(minutes: NDArray[np.uint8]) -> Floats:
    """(minutes of the week,) seconds from the start of the minute until the room closes."""
    closed = np.flatnonzero(minutes == 0)
    if closed.size == 0:
        return np.full(len(minutes), np.inf)
    every = np.arange(len(minutes))
    following = np.searchsorted(closed, every)
    wrapped = np.append(closed, closed[0] + len(minutes)).astype(np.float64)
    seconds: Floats = (wrapped[following] - every) * 60.0
    return seconds
