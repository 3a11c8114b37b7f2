"""Tiny generated campuses for tests: three clusters, twelve machines, three days."""

import datetime as dt
import random
from typing import Final, TypeVar

import numpy as np

from outrider.formats.campus.campus import Campus
from outrider.model.machines import ClusterSpec, OpeningHours
from outrider.plugins.finding import stream

DAY_S: Final = 86_400
SPAN_S: Final = 3 * DAY_S
ROOMS: Final = (("attic", 4, 200.0), ("cellar", 5, 57.0), ("library", 3, 114.0))
_START: Final = dt.datetime(2010, 1, 4)  # noqa: DTZ001 - a site's own wall clock, a Monday
_JOBS: Final = 150
_NEVER: Final = float("nan")
_Job = tuple[float, float, float]
_Session = tuple[float, int, float]
_Row = TypeVar("_Row", _Job, _Session)


def tiny_campus(seed: int = 0, fork_s: float | None = None) -> Campus:
    """Generate a campus with owners who come and go, reboots, kills and jobs that never end.

    All times are whole seconds. Machines are scarce by day and plenty at night.

    Args:
        seed: of owners and jobs.
        fork_s: from this second on everything differs from the campus without a fork; nothing that
                could be seen before differs.
    """
    rng = stream(seed, "testing:campus")
    jobs = _in_order([_job(rng, number) for number in range(_JOBS)])
    sessions = _in_order(_sessions(rng))
    if fork_s is not None:
        other = stream(seed, "testing:fork")
        jobs = _in_order([_other_job(other, job, fork_s) for job in jobs])
        sessions = _in_order([_other_session(other, session, fork_s) for session in sessions])
    rooms = [room for room, (_, machines, _) in enumerate(ROOMS) for _ in range(machines)]
    watts = np.array([ROOMS[room][2] for room in rooms])
    return Campus(
        name=f"tiny campus, seed {seed}",
        start=_START,
        reboot_s=3 * 3600.0,
        idle_before_job_open_s=900.0,
        idle_before_job_closed_s=0.0,
        reconsider_s=1800.0,
        clusters=[
            ClusterSpec(name, OpeningHours("mon-fri 09:00-17:00"), 3600.0, 900.0)
            for name, _, _ in ROOMS
        ],
        machine_names=[f"{ROOMS[room][0]}-{number}" for number, room in enumerate(rooms)],
        machine_cluster=np.array(rooms, dtype=np.int32),
        active_w=watts,
        idle_w=watts * 0.6,
        sleep_w=np.full(len(rooms), 2.0),
        session_machine=np.array([machine for _, machine, _ in sessions], dtype=np.int32),
        login_s=np.array([login for login, _, _ in sessions]),
        logout_s=np.array([logout for _, _, logout in sessions]),
        job_names=[f"job-{number}" for number in range(len(jobs))],
        submit_s=np.array([submit for submit, _, _ in jobs]),
        run_s=np.array([run for _, run, _ in jobs]),
        kill_s=np.array([kill for _, _, kill in jobs]),
        user=np.array([number % 3 for number in range(len(jobs))], dtype=np.int32),
        vo=np.array([number % 2 for number in range(len(jobs))], dtype=np.int32),
        user_names=["ann", "bob", "eve"],
        vo_names=["biology", "physics"],
    )


def _in_order(rows: list[_Row]) -> list[_Row]:
    """Return the rows sorted stably by the first column, so that a fork keeps the order."""
    return sorted(rows, key=lambda row: row[0])


def _job(rng: random.Random, number: int) -> _Job:
    submit = float(rng.randrange(0, SPAN_S * 3 // 4))
    run = float(int(rng.lognormvariate(8.0, 1.2)) + 60)
    if number % 25 == 0:  # hopeless: it never completes
        return submit, _NEVER, submit + rng.randrange(3600, DAY_S)
    return submit, run, submit + rng.randrange(600, DAY_S) if number % 10 == 1 else _NEVER


def _sessions(rng: random.Random) -> list[_Session]:
    made = []
    for machine in range(sum(machines for _, machines, _ in ROOMS)):
        for day in range(SPAN_S // DAY_S):
            for _ in range(rng.randrange(1, 4)):
                login = day * DAY_S + 8 * 3600 + rng.randrange(10 * 3600)
                made.append((float(login), machine, float(login + rng.randrange(300, 9000))))
    return made


def _other_job(rng: random.Random, job: _Job, fork_s: float) -> _Job:
    """Return the job if it is over by the fork, else one that differs only after the fork."""
    submit, run, kill = job
    late = float(rng.randrange(1, 5000))
    if submit >= fork_s:
        submit += late
    still_there = max(0.0, fork_s - submit)
    if run > still_there:  # false for nan: a job that never completes stays so
        run += late
    if kill > fork_s:
        kill += 2 * late
    return submit, run, kill


def _other_session(rng: random.Random, session: _Session, fork_s: float) -> _Session:
    login, machine, logout = session
    late = float(rng.randrange(1, 5000))
    return (
        (login + late if login >= fork_s else login),
        machine,
        (logout + 2 * late if logout >= fork_s else logout),
    )
