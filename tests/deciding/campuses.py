"""Tiny campuses, written by hand or thought of by hypothesis, with many equal times in them."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from hypothesis import strategies as st

from outrider.model.clusters import NEVER_S, ClusterSpec
from outrider.model.opening import OpeningHours
from outrider.virtual.campus import Campus

HOUR_S = 3600.0
DAY_S = 86_400.0
MONDAY = dt.datetime.fromisoformat("2010-01-04T00:00:00")
WEEKDAYS = "mon-fri 09:00-17:00"


class Session(NamedTuple):
    """An owner's stay at a machine."""

    machine: int
    login_s: float
    logout_s: float


class Work(NamedTuple):
    """A job of a trace; the truth about it included."""

    submit_s: float
    run_s: float | None = None
    kill_s: float | None = None
    vo: str = "all"


class Rules(NamedTuple):
    """What ``site.toml`` says."""

    reboot_s: float | None = None
    idle_open_s: float = 0.0
    idle_closed_s: float = 0.0
    sleep_open_s: float = NEVER_S
    sleep_closed_s: float = NEVER_S
    reconsider_s: float = HOUR_S
    start: dt.datetime = MONDAY


PLAIN = Rules()


def make_campus(
    machines: Sequence[int],
    jobs: Sequence[Work],
    sessions: Sequence[Session] = (),
    rules: Rules = PLAIN,
    hours: Sequence[str] = (),
    watts: Sequence[float] = (),
    end_s: float | None = None,
) -> Campus:
    """A campus.

    Args:
        machines: the cluster number of each.
        jobs: sorted by submission here; equal times keep their order.
        sessions: sorted by log-in here; equal times keep their order.
        rules: of the site.
        hours: opening hours of each cluster; open always where not given.
        watts: active watts of each cluster; idle is half of it, sleep a twentieth.
        end_s: the trace lasts at least until then (an owner's last log-out on an extra machine
            in a cluster of its own, at which he sits throughout).
    """
    n = max(machines) + 1
    place, stays = list(machines), list(sessions)
    if end_s is not None:
        stays.append(Session(len(place), 0.0, end_s))
        place.append(n)
        n += 1
    hours = [*hours, *["always"] * (n - len(hours))]
    active = [*watts, *[100.0] * (n - len(watts))]
    stays.sort(key=lambda stay: stay.login_s)
    work = sorted(jobs, key=lambda job: job.submit_s)
    vos = list(dict.fromkeys(job.vo for job in work))
    return Campus(
        name="tiny",
        start=rules.start,
        reboot_s=rules.reboot_s,
        idle_before_job_open_s=rules.idle_open_s,
        idle_before_job_closed_s=rules.idle_closed_s,
        reconsider_s=rules.reconsider_s,
        clusters=[
            ClusterSpec(f"c{c}", OpeningHours(hours[c]), rules.sleep_open_s, rules.sleep_closed_s)
            for c in range(n)
        ],
        machine_names=[f"m{m}" for m in range(len(place))],
        machine_cluster=np.array(place, dtype=np.int32),
        active_w=floats(active[c] for c in place),
        idle_w=floats(active[c] / 2 for c in place),
        sleep_w=floats(active[c] / 20 for c in place),
        session_machine=np.array([stay.machine for stay in stays], dtype=np.int32),
        login_s=floats(stay.login_s for stay in stays),
        logout_s=floats(stay.logout_s for stay in stays),
        job_names=[f"j{number}" for number in range(len(work))],
        submit_s=floats(job.submit_s for job in work),
        run_s=floats(job.run_s for job in work),
        kill_s=floats(job.kill_s for job in work),
        user=np.zeros(len(work), dtype=np.int32),
        vo=np.array([vos.index(job.vo) for job in work], dtype=np.int32),
        user_names=["ann"],
        vo_names=vos or ["all"],
    )


def floats(values: Any) -> Any:
    """A float64 column; None becomes nan."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def with_sessions(campus: Campus, sessions: Sequence[Session]) -> Campus:
    """The same campus with other owner sessions, in the order given."""
    return dataclasses.replace(
        campus,
        session_machine=np.array([stay.machine for stay in sessions], dtype=np.int32),
        login_s=floats(stay.login_s for stay in sessions),
        logout_s=floats(stay.logout_s for stay in sessions),
    )


def sessions_of(campus: Campus) -> list[Session]:
    """The sessions of a campus as rows."""
    columns = (campus.session_machine, campus.login_s, campus.logout_s)
    return [Session(int(m), float(i), float(o)) for m, i, o in zip(*columns, strict=True)]


def grid(most_s: float, step_s: float = 600.0) -> st.SearchStrategy[float]:
    """Times that often coincide."""
    return st.integers(0, int(most_s // step_s)).map(lambda n: n * step_s)


DELAYS = st.sampled_from([0.0, 600.0, 900.0])
SLEEPS = st.sampled_from([0.0, 900.0, 3600.0, NEVER_S])

rules = st.builds(
    Rules,
    reboot_s=st.sampled_from([None, 3 * HOUR_S, 10 * HOUR_S]),
    idle_open_s=DELAYS,
    idle_closed_s=DELAYS,
    sleep_open_s=SLEEPS,
    sleep_closed_s=SLEEPS,
    reconsider_s=st.sampled_from([600.0, 1800.0, HOUR_S]),
    start=st.sampled_from([MONDAY, MONDAY + dt.timedelta(days=4, hours=6, minutes=30)]),
)


@st.composite
def campuses(draw: st.DrawFn, most_days: float = 2.0, most_jobs: int = 14) -> Campus:
    """A few machines, clusters and days; owners, reboots, kills, jobs that never end."""
    clusters = draw(st.integers(1, 4))
    machines = draw(st.lists(st.integers(0, clusters - 1), min_size=2, max_size=8))
    span_s = draw(st.floats(0.25, most_days)) * DAY_S
    when = grid(span_s)
    sessions = [
        Session(draw(st.integers(0, len(machines) - 1)), login_s, login_s + draw(grid(8 * HOUR_S)))
        for login_s in draw(st.lists(when, max_size=16))
    ]
    jobs = []
    for submit_s in draw(st.lists(when, min_size=1, max_size=most_jobs)):
        run_s = draw(st.none() | grid(6 * HOUR_S).map(lambda s: s + 60.0) | grid(3 * HOUR_S))
        kill_s = draw(st.none() | grid(10 * HOUR_S).map(submit_s.__add__))
        jobs.append(Work(submit_s, run_s, kill_s, draw(st.sampled_from(["bio", "phys", "all"]))))
    return make_campus(
        machines,
        jobs,
        sessions,
        draw(rules),
        draw(st.lists(st.sampled_from(["always", "never", WEEKDAYS]), max_size=clusters)),
        draw(st.lists(st.sampled_from([57.0, 114.0, 100.0]), max_size=clusters)),
    )
