"""Scripts for a mock pool: when owners come and go and users submit and remove jobs.

A script is made from a simulated campus or read from a hand-written file. Matches and evictions
are not in it: they are decided by the pool.
"""

import math
import tomllib
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta

from outrider.api import ClusterSpec, ConfigurationError, build, events
from outrider.formats.campus.campus import Campus
from outrider.simulation.exogenous_events import exogenous_events, owner_intervals
from outrider_adapters.htcondor.bindings import HTCondorException
from outrider_adapters.mock_condor.machines import OWNER_AWAY, Machine
from outrider_adapters.mock_condor.pool import MockPool
from outrider_adapters.mock_condor.submitting import job_ad

ScriptEvent: TypeAlias = tuple[float, Callable[[MockPool], object]]
"""Time (seconds from the beginning), and a call on the pool."""

_READY: Final = "IdleLongEnough"
"""Slot attribute by which the script closes a machine during the campus's idle delays."""


class Script(NamedTuple):
    """A pool and the external events in it.

    Attributes:
        machines: the machines at the beginning.
        clusters: clusters with known opening hours and sleep times.
        script_events: sorted by time.
        until_s: second after which the pool is not polled any more.
    """

    machines: list[Machine]
    clusters: list[ClusterSpec]
    script_events: Iterator[ScriptEvent]
    until_s: float = math.inf


def campus_script(campus: Campus) -> Script:
    """The script of a simulated campus: its owners, reboots, submissions and kills.

    ``START`` requires the attribute ``IdleLongEnough``, which is false during the campus's idle
    delay after a log-out or reboot. Jobs have the accounting group of their VO, and no run time in
    their ads.
    """
    start = f"{OWNER_AWAY} && ({_READY} isnt false)"
    machines = [
        Machine(name=name, cluster=campus.clusters[cluster].name, start=start)
        for name, cluster in zip(campus.machine_names, campus.machine_cluster.tolist(), strict=True)
    ]
    return Script(machines, campus.clusters, _campus_events(campus), campus.span_s)


def _campus_events(campus: Campus) -> Iterator[ScriptEvent]:
    stream = exogenous_events(campus, owner_intervals(campus), campus.span_s)
    ids: dict[int, str] = {}
    for time_s, kind, subject, extra in stream.events():
        if kind == events.SUBMITTED:
            run_s = float(campus.run_s[subject])
            yield time_s, partial(_submit, ids, subject, extra.user, extra.vo, run_s)
        elif kind == events.REMOVED:
            yield time_s, partial(_kill, ids, subject)
        elif kind in _MACHINE_EVENTS:
            yield time_s, partial(_MACHINE_EVENTS[kind], machine=campus.machine_names[subject])


def _submit(
    ids: dict[int, str], job: int, user: str, vo: str, run_s: float, pool: MockPool
) -> None:
    description = {"executable": "/bin/job", "accounting_group": vo}
    result = pool.submit(user, description, math.inf if math.isnan(run_s) else run_s)
    ids[job] = f"{result.cluster()}.0"


def _kill(ids: dict[int, str], job: int, pool: MockPool) -> None:
    pool.remove(ids[job])


def _came(pool: MockPool, machine: str) -> None:
    pool.owner_came(machine)


def _went(pool: MockPool, machine: str) -> None:
    pool.publish(machine, _READY, "false")
    pool.owner_went(machine)


def _opened(pool: MockPool, machine: str) -> None:
    pool.publish(machine, _READY, "true")


def _closed(pool: MockPool, machine: str) -> None:
    pool.publish(machine, _READY, "false")


_MACHINE_EVENTS: Final = {
    events.OWNER_CAME: _came,
    events.OWNER_WENT: _went,
    events.USABLE: _opened,
    events.REBOOTED: _closed,
}


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """``[[jobs]]``: a submission by a user at a time."""

    user: Annotated[str, Meta(min_length=1)]
    run_s: Annotated[float, Meta(ge=0)]
    at_s: Annotated[float, Meta(ge=0)] = 0.0
    count: Annotated[int, Meta(ge=1)] = 1
    submit: dict[str, str] = {}

    @property
    def description(self) -> dict[str, str]:
        """The submit commands; the executable has no effect."""
        return {"executable": "/bin/job", **self.submit}


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """``[[owners]]``: an interval with an owner at a machine; without an end, for ever."""

    machine: str
    came_s: Annotated[float, Meta(ge=0)]
    went_s: Annotated[float, Meta(ge=0)] = math.inf


class PoolFile(msgspec.Struct, frozen=True, kw_only=True):
    """The tables of a hand-written pool."""

    machines: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    jobs: list[dict[str, Any]] = []
    owners: list[dict[str, Any]] = []


def file_script(path: Path) -> Script:
    """Read a hand-written pool: ``[[machines]]``, ``[[jobs]]`` and ``[[owners]]`` in TOML.

    Raises:
        ConfigurationError: unreadable file, or a wrong value; names table and key.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read as TOML: {error}") from error
    file = build(PoolFile, given, str(path))
    machines = _rows(Machine, file.machines, f"{path} [[machines]]")
    names = {machine.name for machine in machines}
    script_events: list[ScriptEvent] = []
    for visit in _rows(Visit, file.owners, f"{path} [[owners]]"):
        if visit.machine not in names:
            raise ConfigurationError(
                f'{path} [[owners]]: machine = "{visit.machine}" is none of [[machines]]'
            )
        if visit.went_s < visit.came_s:
            raise ConfigurationError(
                f"{path} [[owners]]: went_s = {visit.went_s:g}: right would be {visit.came_s:g} "
                "(its came_s) or later"
            )
        script_events.append((visit.came_s, partial(MockPool.owner_came, machine=visit.machine)))
        if visit.went_s < math.inf:
            script_events.append(
                (visit.went_s, partial(MockPool.owner_went, machine=visit.machine))
            )
    for job in _rows(Submission, file.jobs, f"{path} [[jobs]]"):
        try:
            job_ad(job.description, job.user, "", cluster=1, proc=0, now_s=0.0)
        except HTCondorException as error:
            raise ConfigurationError(f"{path} [[jobs]] of {job.user}: {error}") from error
        script_events.append((job.at_s, partial(_submit_by_hand, job)))
    script_events.sort(key=lambda event: event[0])
    return Script(machines, [], iter(script_events))


def _submit_by_hand(job: Submission, pool: MockPool) -> None:
    pool.submit(job.user, job.description, job.run_s, job.count)


def _rows(record: type[Any], rows: list[dict[str, Any]], where: str) -> list[Any]:
    return [build(record, row, f"{where} {number}") for number, row in enumerate(rows, 1)]
