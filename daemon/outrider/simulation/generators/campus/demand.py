"""Demand for each room in five-minute slots: the hazard of a log-in on a free seat."""

import datetime as dt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.simulation.generators.campus import calendar
from outrider.simulation.generators.campus.options import PAPER_MACHINES, PAPER_SESSIONS
from outrider.simulation.generators.campus.rooms import Rooms

Floats = NDArray[np.float64]

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
    """Demand by seat, room and time.

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
        """(days x 288 + 1,) expected log-ins on a free seat of popularity 1 since the start."""
        days = len(self.daily)
        weekdays = (np.arange(days) + self.weekday) % 7
        profile = self.profile[cluster].reshape(7, DAY_SLOTS)[weekdays]
        classes = self.timetable[cluster].reshape(7, DAY_SLOTS)[weekdays]
        level = self.casual[cluster] * self.daily * self.mood[cluster]
        rate = profile * level[:, None] + classes * self.term[:, None]
        return np.concatenate([[0.0], np.cumsum(rate.ravel())])

    def class_share(self) -> Floats:
        """(clusters, week slots) share of log-ins in term that belong to a class."""
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
    hourly = calendar.HOUR_PROFILE / calendar.HOUR_PROFILE.mean()
    profile = opened * np.tile(np.repeat(hourly, 12), 7) * (SLOT_S / 3600)
    timetable = _timetable(rooms, opened, habits)
    calendar_days = calendar.days_from(start, days)
    return Demand(
        seat=seat,
        casual=_casual(rooms, seat, wanted, profile, timetable),
        timetable=timetable,
        profile=profile,
        mood=_moods(clusters, days, moods),
        daily=np.array([calendar.day_demand(day) for day in calendar_days]),
        term=np.array([float(calendar.is_term(day)) for day in calendar_days]),
        weekday=start.weekday(),
    )


def _timetable(rooms: Rooms, opened: Floats, rng: np.random.Generator) -> Floats:
    """Weekly classes, on the hour between 9 and 17 on weekdays, the same all year."""
    chance = np.array(CLASS_CHANCE)[rooms.kind]
    booked = rng.random((len(chance), 5, 8)) < chance[:, None, None]
    table = np.zeros((len(chance), 7, 24, 12))
    table[:, :5, 9:17, : len(CLASS_PULL)] = booked[..., None] * CLASS_PULL
    return table.reshape(len(chance), WEEK_SLOTS) * opened


def _moods(clusters: int, days: int, rng: np.random.Generator) -> Floats:
    """(clusters, days) variation of mean 1 that lasts a few days, plus a weaker campus-wide one.

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
    """(clusters,) hazard with which the seats of each room get the wanted sessions in a year.

    A seat in use takes no log-in, so n sessions need more than n arrivals: in the steady state
    of a slot with hazard h and mean stay m, 1 / (m + 1 / h) sessions come per hour. The hazard
    is found by repeated scaling, which converges from below because sessions grow slower.
    """
    demand, days = calendar.typical_week()
    clusters = len(wanted)
    per_hour = profile.reshape(clusters, 7, 24, 12).sum(3)
    classes = timetable.reshape(clusters, 7, 24, 12).sum(3)
    in_term = demand >= calendar.WEEKEND
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
