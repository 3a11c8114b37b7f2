"""View of one machine: its state now, and its history from the journal."""

import asyncio
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.accounting.machine_power import ASLEEP, IDLING
from outrider.journal import Journal, RunRecord
from outrider.model.jobs import JOB_STATE_NAMES, RUNNING, Job
from outrider.model.localtime import DAY_S, HOUR_S, WEEK_S, LocalTime
from outrider.model.machines import MachineSpec
from outrider.service.core.core import Core
from outrider.service.core.failed_starts import LOOK_BACK_S
from outrider.service.shapes.site import (
    FailedStartsThere,
    JobOnMachine,
    MachineRow,
    MachineWatts,
    OneMachine,
    OwnerWeek,
    RunOnMachine,
)
from outrider.service.shapes.values import MachineState, OutsideText, UserName, VoName
from outrider.service.views.over_time import KeptAnswers, Make
from outrider.service.views.sentences import no_data
from outrider.service.views.status import is_draining, machine_state

MOST_RUNS: Final = 25
MOST_JOBS: Final = 100
MOST_EVENTS: Final = 5_000
"""Maximum number of owner events that are read for the owner's week."""
_MOST_KEPT: Final = 16
_JOBS_AT_A_TIME: Final = 2_000
_CLOSING: Final = frozenset({"owner_went", "drained"})
"""Event kinds after which a machine is not open to jobs."""


class MachineHistory(NamedTuple):
    """History of a machine in the journal.

    Attributes:
        runs: its last ended runs, the newest first; None: the journal cannot be searched for them.
        events: time and kind of its owner events, in order.
        owner_week: presence of its owner; None: no owner was ever seen.
    """

    runs: list[RunRecord] | None
    events: list[tuple[float, str]]
    owner_week: OwnerWeek | None


class MachineHistories:
    """Cache of machine histories from the journal, for a few machines."""

    def __init__(self) -> None:
        self._kept = KeptAnswers[MachineHistory]("machine-history", most=_MOST_KEPT)

    async def of(self, machine: str, core: Core, journal: Path) -> MachineHistory:
        """Return the history of a machine, read in a thread.

        Args:
            machine: its name.
            core: the daemon's.
            journal: its file.

        Raises:
            LedgerError: the journal cannot be read.
            TimeoutError: its disk does not answer, or too many ask for machines at once.
        """

        async def prepare() -> Make[MachineHistory]:
            now_s, local_time = core.site.now, core.site.local_time
            return lambda: read_machine(machine, now_s, local_time, journal)

        return await self._kept.of(machine, prepare)


def read_machine(machine: str, now_s: float, local_time: LocalTime, path: Path) -> MachineHistory:
    """Return the history of a machine from a journal. Raises `LedgerError`."""
    with Journal(path, read_only=True) as journal:
        runs = journal.runs_on(machine, MOST_RUNS)
        events = journal.events_of_machine(machine, MOST_EVENTS) or []
    return MachineHistory(runs, events, owner_week(events, now_s, local_time))


def number_of(core: Core, machine: str) -> int | None:
    """Return the number of a machine that is here now; None: there is none of this name."""
    m, specs = core.merger.normaliser.machine_number(machine), core.site.specs
    return m if m is not None and m < len(specs) and specs[m] is not None else None


async def machine_now(core: Core, machine: str, history: MachineHistory) -> OneMachine | None:
    """Return a machine as ``api/v1/machine`` shows it, with user names; None: it is not here.

    Args:
        core: the daemon's.
        machine: its name.
        history: of `MachineHistories`.
    """
    jobs = await _jobs_on(core, machine)
    m, site = number_of(core, machine), core.site
    spec = None if m is None else site.specs[m]
    if m is None or spec is None:
        return None
    state = machine_state(core, m)
    power = core.accounting.energy.machine(m)
    measured_w = power.measured_w(site.now)
    working = sum(job.cpus for job in jobs if job.state == RUNNING)
    watts = power.table_w(working, site.now) if measured_w is None else measured_w
    job_names = core.merger.normaliser.job_names
    return OneMachine(
        mode=core.config.mode,
        now_s=core.now_s,
        machine=machine,
        cluster=site.cluster_names[site.machine_cluster[m]],
        state=state,
        since_s=_since_s(core, m, state, jobs, history.events),
        cpus=site.cpus[m],
        busy_cpus=site.busy[m],
        inferred=spec.inferred,
        draining=is_draining(core, m),
        closed_because=_closed_because(core, m),
        no_data=no_data(core),
        watts=MachineWatts(
            now_w=None if math.isnan(watts) else watts,
            is_measured=measured_w is not None,
            active_w=spec.active_w,
            idle_w=spec.idle_w,
            sleep_w=spec.sleep_w,
        ),
        jobs=[
            JobOnMachine(
                job=job_names[job.number],
                state=JOB_STATE_NAMES[job.state],
                user=(user := UserName.of_job(job.spec)),
                vo=VoName(job.spec.vo, user),
                cpus=job.cpus,
                start_s=job.start_s,
            )
            for job in jobs[:MOST_JOBS]
        ],
        jobs_total=len(jobs),
        runs=None if history.runs is None else [_run_row(run) for run in history.runs],
        failed_starts=_failed_starts(core, m),
        owner_week=history.owner_week,
    )


def _run_row(run: RunRecord) -> RunOnMachine:
    return RunOnMachine(
        job=run.job,
        vo=VoName(run.vo, f"job {run.job}"),
        cpus=run.cpus,
        start_s=run.start_s,
        end_s=run.end_s,
        run_s=run.run_s,
        lost_because=run.reason or None,
    )


def machine_row(core: Core, m: int, spec: MachineSpec) -> MachineRow:
    """Return the current state of a machine, as lists show it."""
    site = core.site
    return MachineRow(
        machine=core.merger.normaliser.machine_names[m],
        cluster=site.cluster_names[site.machine_cluster[m]],
        state=machine_state(core, m),
        cpus=site.cpus[m],
        busy_cpus=site.busy[m],
        active_w=spec.active_w,
        inferred=spec.inferred,
        draining=is_draining(core, m),
        closed_because=_closed_because(core, m),
    )


def _closed_because(core: Core, m: int) -> OutsideText | None:
    why = core.site.closed_because.get(m)
    return None if why is None else OutsideText(why, "")


async def _jobs_on(core: Core, machine: str) -> list[Job]:
    """Return the jobs on the machine, the oldest start first; other tasks may run in between."""
    m, found = number_of(core, machine), []
    for place, job in enumerate(tuple(core.site.jobs.values())):
        if place % _JOBS_AT_A_TIME == 0:
            await asyncio.sleep(0)
        if job.machine == m:
            found.append(job)
    if m is None or m != number_of(core, machine):
        return []  # it left meanwhile
    here = [job for job in found if core.site.jobs.get(job.number) is job and job.machine == m]
    return sorted(here, key=lambda job: job.start_s)


def _since_s(
    core: Core, m: int, state: MachineState, jobs: list[Job], events: Sequence[tuple[float, str]]
) -> float | None:
    """Return since when a machine is in its state; None: not known."""
    last_s, last = events[-1] if events else (None, "")
    if state == "free":
        return core.site.free_since.get(m)
    if state == "busy":
        return min((job.start_s for job in jobs), default=None)
    if state == "owner":
        return last_s if last == "owner_came" else None
    if state == "asleep":
        power = core.accounting.energy.machine(m)
        if power.state == IDLING:
            return power.sleeps_at
        return last_s if power.state == ASLEEP and last == "asleep" else None
    return last_s if last in _CLOSING else None


def _failed_starts(core: Core, m: int) -> FailedStartsThere:
    noted, now_s = core.accounting.failed_starts, core.site.now
    tried, failed = noted.of_machine(m, now_s)
    hole = next((hole for hole in noted.black_holes(now_s) if hole.machine == m), None)
    return FailedStartsThere(
        within_s=LOOK_BACK_S,
        tried=tried,
        failed=failed,
        is_black_hole=hole is not None,
        expected_ratio=None if hole is None else hole.expected,
        low_ratio=None if hole is None else hole.low,
    )


# -- owner week ------------------------------------------------------------------------------------
# When the owner of a machine is there, by hour of the week, from the machine's events.

OWNER_WEEKS_S: Final = 8.0 * WEEK_S
"""Maximum age of owner events: older habits are no guide to the present."""
_QUARTER_S: Final = 900.0
"""Seconds of which every time zone's offset from UTC is a multiple."""
_HOURS: Final = WEEK_S // HOUR_S
_THERE: Final = "owner_came"
_NOT_THERE: Final = frozenset({"owner_went", "usable"})
_NOT_SEEN: Final = "left"

Stretch = tuple[float, float, bool]
"""Begin and end in seconds, and true if the owner was logged in."""


def owner_week(
    events: Sequence[tuple[float, str]], now_s: float, local_time: LocalTime
) -> OwnerWeek | None:
    """Return the share of time with the owner logged in, by hour of the site's week.

    Args:
        events: time and kind of the machine's, in order.
        now_s: event time.
        local_time: the site's.

    Returns:
        The shares, since when, and how often the owner came; None: no owner was ever seen to come.
    """
    begin_s = now_s - OWNER_WEEKS_S
    stretches = [
        (max(start_s, begin_s), end_s, there)
        for start_s, end_s, there in stretches_of(events, now_s)
        if end_s > begin_s
    ]
    sessions = sum(there for _, _, there in stretches)
    if not sessions:
        return None
    first_s = stretches[0][0]
    edges = np.arange(first_s // _QUARTER_S, now_s // _QUARTER_S + 2) * _QUARTER_S
    hours = (local_time.week_seconds(edges[:-1]) // HOUR_S).astype(np.intp)

    def by_hour(chosen: list[Stretch]) -> NDArray[np.float64]:
        seconds = np.zeros(_HOURS)
        np.add.at(seconds, hours, np.diff(_covered(edges, chosen)))
        return seconds

    seen_s = by_hour(stretches)
    there_s = by_hour([one for one in stretches if one[2]])
    share = [
        round(float(there / seen), 4) if seen > 0 else None
        for there, seen in zip(there_s, seen_s, strict=True)
    ]
    day = DAY_S // HOUR_S
    return OwnerWeek(
        since_s=first_s,
        sessions=sessions,
        share=[share[at : at + day] for at in range(0, _HOURS, day)],
    )


def stretches_of(events: Sequence[tuple[float, str]], now_s: float) -> list[Stretch]:
    """Return the stretches in which the owner's presence is known, the last until now.

    It is unknown before the first event that shows it, and after the machine left.
    """
    found: list[Stretch] = []
    since_s, there = 0.0, None
    for time_s, kind in [*events, (now_s, _NOT_SEEN)]:
        if kind == _THERE:
            present: bool | None = True
        elif kind in _NOT_THERE:
            present = False
        elif kind == _NOT_SEEN:
            present = None
        else:
            continue
        if present is there:
            continue
        if there is not None and time_s > since_s:
            found.append((since_s, time_s, there))
        since_s, there = time_s, present
    return found


def _covered(at_s: NDArray[np.float64], stretches: list[Stretch]) -> NDArray[np.float64]:
    """Return the seconds of the stretches up to each moment, of shape (moments,)."""
    if not stretches:
        return np.zeros(len(at_s))
    points, so_far = [], [0.0]
    for start_s, end_s, _ in stretches:
        points += [start_s, end_s]
        so_far += [so_far[-1] + end_s - start_s] * 2
    return np.interp(at_s, points, so_far[:-1])
