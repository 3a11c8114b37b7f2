"""Generator of a whole campus: rooms, owner sessions and jobs."""

import datetime as dt
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.formats.campus.campus import Campus
from outrider.model.errors import ConfigurationError
from outrider.model.localtime import WEEK_S
from outrider.model.settings import build
from outrider.simulation.generators.campus.jobs import build_users, draw_jobs
from outrider.simulation.generators.campus.options import (
    PAPER_MACHINES,
    PAPER_SESSIONS,
    STORM_DAY,
    CampusOptions,
    check,
    job_counts,
    streams_of,
)
from outrider.simulation.generators.campus.rooms import Rooms, build_rooms

# -- calendar --------------------------------------------------------------------------------------
# Demand for machines over time: terms and vacations, days of the week, hours of the day.

Floats = NDArray[np.float64]

TERM_WEEKS: Final = (range(2, 12), range(16, 25), range(39, 51))
"""ISO weeks of the three terms. In 2010: 11 Jan-21 Mar, 19 Apr-20 Jun, 27 Sep-19 Dec."""

AUTUMN_RUSH_WEEKS: Final = range(39, 43)
AUTUMN_RUSH: Final = 1.25
VACATION: Final = 0.13
WEEKEND: Final = 0.18
CLOSURE: Final = 0.016

HOUR_PROFILE: Final = np.array(
    (
        1.0, 0.6, 0.4, 0.2, 0.1, 0.1, 0.25, 0.6, 2.1, 6.2, 8.9, 10.2,
        10.4, 10.9, 10.4, 9.9, 9.0, 5.6, 4.0, 3.3, 2.9, 2.5, 1.9, 1.4,
    )
)  # fmt: skip
"""Relative demand for log-ins by hour of day."""


def is_term(day: dt.date) -> bool:
    """Return whether lectures are given in the week of this day."""
    week = day.isocalendar().week
    return any(week in term for term in TERM_WEEKS)


def is_closed(day: dt.date) -> bool:
    """Return whether the university is closed over Christmas: 23 December to 3 January."""
    return (day.month == 12 and day.day >= 23) or (day.month == 1 and day.day <= 3)


def day_demand(day: dt.date) -> float:
    """Return the demand for log-ins on this day, relative to a weekday in term."""
    if is_closed(day):
        demand = CLOSURE
    elif not is_term(day):
        demand = VACATION
    elif day.isocalendar().week in AUTUMN_RUSH_WEEKS:
        demand = AUTUMN_RUSH
    else:
        demand = 1.0
    return demand * (WEEKEND if day.weekday() >= 5 else 1.0)


def days_from(start: dt.date, count: int) -> list[dt.date]:
    """Return `count` consecutive days from `start`."""
    return [start + dt.timedelta(days=number) for number in range(count)]


def typical_week() -> tuple[Floats, Floats]:
    """Return the distinct kinds of day in 2010 and how often each occurs.

    Returns:
        (7, levels) demand of each kind of day by weekday, and (7, levels) days a year.
    """
    counts: list[dict[float, int]] = [{} for _ in range(7)]
    for day in days_from(dt.date(2010, 1, 1), 365):
        kinds = counts[day.weekday()]
        demand = day_demand(day)
        kinds[demand] = kinds.get(demand, 0) + 1
    levels = max(len(kinds) for kinds in counts)
    demand_by_day = np.zeros((7, levels))
    days_a_year = np.zeros((7, levels))
    for weekday, kinds in enumerate(counts):
        demand_by_day[weekday, : len(kinds)] = list(kinds)
        days_a_year[weekday, : len(kinds)] = list(kinds.values())
    return demand_by_day, days_a_year


# -- demand ----------------------------------------------------------------------------------------
# Demand for each room in five-minute slots: the hazard of a log-in on a free seat.


SLOT_S: Final = 300
DAY_SLOTS: Final = 288
WEEK_SLOTS: Final = 7 * DAY_SLOTS

SEAT_SHAPE: Final = 1.3
SESSIONS_BY_KIND: Final = (1_239.0, 636.0, 954.0)
POPULARITY_SPREAD: Final = (0.55, 0.28, 0.30)
CLASS_CHANCE: Final = (0.0, 0.16, 0.12)
CLASS_PULL: Final = np.array([0.70, 0.30])
"""Expected log-ins on a free seat of mean popularity in a class's first two slots."""

MOOD_SPREAD: Final = 0.27
MOOD_DAYS: Final = 4.0
CAMPUS_SPREAD: Final = 0.03
MEAN_STAY_H: Final = 0.98

_ROUNDS = 20


class Demand(NamedTuple):
    """Demand for machines by seat, room and time.

    Attributes:
        seat: (machines,) popularity of each seat within its room, mean about 1.
        casual: (clusters,) hazard per hour of a free seat at the year's mean hour of day.
        timetable: (clusters, week slots) class log-ins expected per slot, in term.
        profile: (clusters, week slots) casual log-ins per slot and unit of `casual`.
        mood: (clusters, days) slow random variation of each room's demand, mean 1.
        daily: (days,) demand of the calendar.
        term: (days,) 1 in term.
        weekday: day of the week of day 0.
    """

    seat: Floats
    casual: Floats
    timetable: Floats
    profile: Floats
    mood: Floats
    daily: Floats
    term: Floats
    weekday: int

    def cumulative(self, cluster: int) -> Floats:
        """Return expected log-ins (days x 288 + 1,) on a seat of popularity 1 since the start."""
        days = len(self.daily)
        weekdays = (np.arange(days) + self.weekday) % 7
        profile = self.profile[cluster].reshape(7, DAY_SLOTS)[weekdays]
        classes = self.timetable[cluster].reshape(7, DAY_SLOTS)[weekdays]
        level = self.casual[cluster] * self.daily * self.mood[cluster]
        rate = profile * level[:, None] + classes * self.term[:, None]
        return np.concatenate([[0.0], np.cumsum(rate.ravel())])

    def class_share(self) -> Floats:
        """Return the share of log-ins in term that belong to a class (clusters, week slots)."""
        casual = self.profile * self.casual[:, None]
        return self.timetable / np.maximum(self.timetable + casual, 1e-12)


def build_demand(
    rooms: Rooms,
    start: dt.date,
    days: int,
    habits: np.random.Generator,
    moods: np.random.Generator,
) -> Demand:
    """Draw seats, popularity and timetables from `habits`, daily variation from `moods`."""
    clusters = len(rooms.specs)
    seat = habits.gamma(SEAT_SHAPE, 1 / SEAT_SHAPE, len(rooms.names))
    popular = np.clip(habits.standard_normal(clusters), -1.5, 1.5)
    wanted = np.array(SESSIONS_BY_KIND)[rooms.kind] * np.exp(
        np.array(POPULARITY_SPREAD)[rooms.kind] * popular
    )
    sizes = np.bincount(rooms.cluster, minlength=clusters)
    wanted *= PAPER_SESSIONS / PAPER_MACHINES * sizes.sum() / (wanted * sizes).sum()
    opened = np.array([np.frombuffer(spec.hours.minutes, np.uint8) for spec in rooms.specs])
    opened = opened[:, ::5].astype(np.float64)
    hourly = HOUR_PROFILE / HOUR_PROFILE.mean()
    profile = opened * np.tile(np.repeat(hourly, 12), 7) * (SLOT_S / 3600)
    timetable = _timetable(rooms, opened, habits)
    calendar_days = days_from(start, days)
    return Demand(
        seat=seat,
        casual=_casual(rooms, seat, wanted, profile, timetable),
        timetable=timetable,
        profile=profile,
        mood=_moods(clusters, days, moods),
        daily=np.array([day_demand(day) for day in calendar_days]),
        term=np.array([float(is_term(day)) for day in calendar_days]),
        weekday=start.weekday(),
    )


def _timetable(rooms: Rooms, opened: Floats, rng: np.random.Generator) -> Floats:
    """Draw weekly classes, on the hour between 9 and 17 on weekdays, the same all year."""
    chance = np.array(CLASS_CHANCE)[rooms.kind]
    booked = rng.random((len(chance), 5, 8)) < chance[:, None, None]
    table = np.zeros((len(chance), 7, 24, 12))
    table[:, :5, 9:17, : len(CLASS_PULL)] = booked[..., None] * CLASS_PULL
    return table.reshape(len(chance), WEEK_SLOTS) * opened


def _moods(clusters: int, days: int, rng: np.random.Generator) -> Floats:
    """Draw variation (clusters, days) of mean 1 that lasts days, plus a campus-wide one.

    Drawn day by day, so that a longer trace begins like a shorter one.
    """
    mood = np.empty((days, clusters))
    level = rng.standard_normal(clusters)
    for day in range(days):
        fresh = rng.standard_normal(clusters)
        level = np.where(rng.random(clusters) < 1 / MOOD_DAYS, fresh, level)
        whole = CAMPUS_SPREAD * rng.standard_normal()
        mood[day] = np.exp(MOOD_SPREAD * level - MOOD_SPREAD**2 / 2 + whole)
    return np.ascontiguousarray(mood.T)


def _casual(
    rooms: Rooms, seat: Floats, wanted: Floats, profile: Floats, timetable: Floats
) -> Floats:
    """Return the hazard (clusters,) with which each room gets the wanted sessions in a year.

    A seat in use takes no log-in, so n sessions need more than n arrivals: in the steady state
    of a slot with hazard h and mean stay m, 1 / (m + 1 / h) sessions come per hour. The hazard
    is found by repeated scaling, which converges from below because sessions grow slower.
    """
    demand, days = typical_week()
    clusters = len(wanted)
    per_hour = profile.reshape(clusters, 7, 24, 12).sum(3)
    classes = timetable.reshape(clusters, 7, 24, 12).sum(3)
    in_term = demand >= WEEKEND
    hazard = np.full(clusters, 0.1)
    members = [seat[rooms.cluster == cluster] for cluster in range(clusters)]
    for cluster, seats in enumerate(members):
        base = (per_hour[cluster][:, None, :] * demand[:, :, None]).ravel()
        taught = (classes[cluster][:, None, :] * in_term[:, :, None]).ravel()
        weight = np.repeat(days.ravel(), 24)
        busy = (weight > 0) & (base > 0)
        base, taught, weight = base[busy], taught[busy], weight[busy]
        for _ in range(_ROUNDS):
            rate = seats[:, None] * (hazard[cluster] * base + taught)
            came = float((rate / (1 + MEAN_STAY_H * rate) @ weight).mean())
            hazard[cluster] *= wanted[cluster] / came
    return hazard


# -- year ------------------------------------------------------------------------------------------

REBOOT_S = 3 * 3600.0
IDLE_BEFORE_JOB_OPEN_S = 900.0
IDLE_BEFORE_JOB_CLOSED_S = 0.0
RECONSIDER_S = 3600.0


def generate_campus(seed: int, **options: Any) -> Campus:
    """Generate a campus; the same seed and options give the same one.

    Args:
        seed: not negative. Machines, sessions and jobs have their own random streams, so that
            options about jobs do not change the sessions.
        options: fields of `CampusOptions`: `weeks`, `machines`, `clusters`, `start`, `jobs`,
            `bad_jobs`. Without any, the year of the paper.

    Raises:
        ConfigurationError: an option is unknown, out of range or contradicts another.

    >>> campus = generate_campus(1, weeks=1, machines=20, clusters=2)
    >>> len(campus.machine_names), len(campus.clusters)
    (20, 2)
    """
    if seed < 0:
        raise ConfigurationError(f"generate campus: seed = {seed}; expected 0 or more")
    wanted = build(CampusOptions, options, "generate campus")
    check(wanted)
    size_ratio = wanted.machines / PAPER_MACHINES
    streams = streams_of(seed)
    rooms = build_rooms(wanted.machines, wanted.clusters, streams.rooms)
    demand = build_demand(rooms, wanted.start, wanted.days, streams.habits, streams.moods)
    sessions = draw_sessions(rooms, demand, wanted.span_s, streams.sessions)
    counts = job_counts(wanted)
    users = build_users(size_ratio, streams.users)
    jobs = draw_jobs(
        counts, users, size_ratio, wanted.start.weekday(), wanted.span_s,
        (STORM_DAY - wanted.start).days if counts.storm else None, streams,
    )  # fmt: skip
    return Campus(
        name=f"generated-{seed}",
        start=dt.datetime.combine(wanted.start, dt.time()),
        reboot_s=REBOOT_S,
        idle_before_job_open_s=IDLE_BEFORE_JOB_OPEN_S,
        idle_before_job_closed_s=IDLE_BEFORE_JOB_CLOSED_S,
        reconsider_s=RECONSIDER_S,
        clusters=rooms.specs,
        machine_names=rooms.names,
        machine_cluster=rooms.cluster,
        active_w=rooms.active_w,
        idle_w=rooms.idle_w,
        sleep_w=rooms.sleep_w,
        session_machine=sessions.machine,
        login_s=sessions.login_s,
        logout_s=sessions.logout_s,
        job_names=[f"j{number}" for number in range(len(jobs.submit_s))],
        submit_s=jobs.submit_s,
        run_s=jobs.run_s,
        kill_s=jobs.kill_s,
        user=jobs.user,
        vo=users.vo[jobs.user],
        user_names=users.names,
        vo_names=users.vo_names,
    )


# -- owners ----------------------------------------------------------------------------------------
# Owner sessions: a renewal process per seat, so that sessions of one machine never overlap.

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
"""Seconds between a log-out and the next log-in at the same machine, at least."""
EMPTYING_S: Final = 300.0
"""Seconds before closing over which the last log-outs of a room are spread."""


class Sessions(NamedTuple):
    """Columns (sessions,) machine, log-in and log-out in seconds, by log-in."""

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
        """Return when the hazard since `free_s` sums to `wait`; inf if the trace ends before."""
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
    """Model of session lengths: short, long or a class; never past closing time."""

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
        """Return log-out times (n,), from (2, n) uniform and (n,) normal draws."""
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
    """Return the seconds (minutes of the week,) from each minute until the room closes."""
    closed = np.flatnonzero(minutes == 0)
    if closed.size == 0:
        return np.full(len(minutes), np.inf)
    every = np.arange(len(minutes))
    following = np.searchsorted(closed, every)
    wrapped = np.append(closed, closed[0] + len(minutes)).astype(np.float64)
    seconds: Floats = (wrapped[following] - every) * 60.0
    return seconds
