"""A whole generated campus: rooms, owner sessions and jobs."""

import datetime as dt
from typing import Any

from outrider.formats.campus.campus import Campus
from outrider.model.errors import ConfigurationError
from outrider.model.settings import build
from outrider.simulation.generators.campus.demand import build_demand
from outrider.simulation.generators.campus.jobs import draw_jobs
from outrider.simulation.generators.campus.options import (
    PAPER_MACHINES,
    STORM_DAY,
    CampusOptions,
    check,
    job_counts,
)
from outrider.simulation.generators.campus.owners import draw_sessions
from outrider.simulation.generators.campus.rooms import build_rooms
from outrider.simulation.generators.campus.streams import streams_of
from outrider.simulation.generators.campus.users import build_users

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
        raise ConfigurationError(f"generate campus: seed = {seed}; right would be 0 or more")
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
