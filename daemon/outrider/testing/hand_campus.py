"""Tiny campuses written by hand: machines, owners and jobs, one row each."""

import dataclasses
import datetime as dt
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from outrider.formats.campus.campus import Campus
from outrider.model.machines import NEVER_S, ClusterSpec, OpeningHours

HOUR_S = 3600.0
DAY_S = 86_400.0
MONDAY = dt.datetime.fromisoformat("2010-01-04T00:00:00")
WEEKDAYS = "mon-fri 09:00-17:00"


class Session(NamedTuple):
    """Stay of an owner at a machine."""

    machine: int
    login_s: float
    logout_s: float


class Work(NamedTuple):
    """Job of a trace, with its true run time."""

    submit_s: float
    run_s: float | None = None
    kill_s: float | None = None
    vo: str = "all"


class Rules(NamedTuple):
    """Site rules, as in ``site.toml``."""

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
    """Return a campus of these machines and jobs.

    Args:
        machines: the cluster number of each.
        jobs: sorted by submission here; equal times keep their order.
        sessions: sorted by log-in here; equal times keep their order.
        rules: of the site.
        hours: opening hours of each cluster; always open by default.
        watts: active watts of each cluster; idle is half of it, sleep a twentieth.
        end_s: minimum end of the trace (the last log-out of an owner on an extra machine
        in a separate cluster, who is logged in throughout).
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
    """Return a float64 column; None becomes nan."""
    return np.array([np.nan if v is None else v for v in values], dtype=np.float64)


def with_sessions(campus: Campus, sessions: Sequence[Session]) -> Campus:
    """Return the same campus with other owner sessions, in the given order."""
    return dataclasses.replace(
        campus,
        session_machine=np.array([stay.machine for stay in sessions], dtype=np.int32),
        login_s=floats(stay.login_s for stay in sessions),
        logout_s=floats(stay.logout_s for stay in sessions),
    )


def sessions_of(campus: Campus) -> list[Session]:
    """Return the sessions of a campus as rows."""
    columns = (campus.session_machine, campus.login_s, campus.logout_s)
    return [Session(int(m), float(i), float(o)) for m, i, o in zip(*columns, strict=True)]
