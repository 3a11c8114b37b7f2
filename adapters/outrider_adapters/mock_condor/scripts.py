"""What happens in a mock pool from outside: owners come and go, users submit, by a script.

The script is a virtual campus or a file written by hand. What the pool makes of it, who starts
where and who is evicted, is its own affair.
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
from outrider_adapters.mock_condor.bindings import HTCondorException
from outrider_adapters.mock_condor.machines import OWNER_AWAY, Machine
from outrider_adapters.mock_condor.pool import MockPool
from outrider_adapters.mock_condor.submitting import job_ad

Happening: TypeAlias = tuple[float, Callable[[MockPool], object]]
"""When (seconds from the beginning), and what it does to the pool."""

_READY: Final = "IdleLongEnough"
"""Slot attribute by which the campus, who counts opening hours, keeps a machine closed."""


class Script(NamedTuple):
    """A pool and what happens to it.

    Attributes:
        machines: what it begins with.
        clusters: whose habits are known.
        happenings: in order.
        until_s: second after which nothing more is looked at.
    """

    machines: list[Machine]
    clusters: list[ClusterSpec]
    happenings: Iterator[Happening]
    until_s: float = math.inf


def campus_script(campus: Campus) -> Script:
    """A virtual campus: its owners, reboots, submissions and kills; HTCondor is the incumbent.

    A machine opens to jobs when the campus says so: its idle delay after a log-out or reboot,
    by opening hours, is the attribute ``IdleLongEnough`` in ``START``. Jobs have the accounting
    group of their VO and never tell how long they run.
    """
    start = f"{OWNER_AWAY} && ({_READY} isnt false)"
    machines = [
        Machine(name=name, cluster=campus.clusters[cluster].name, start=start)
        for name, cluster in zip(campus.machine_names, campus.machine_cluster.tolist(), strict=True)
    ]
    return Script(machines, campus.clusters, _campus_happenings(campus), campus.span_s)


def _campus_happenings(campus: Campus) -> Iterator[Happening]:
    stream = exogenous_events(campus, owner_intervals(campus), campus.span_s)
    ids: dict[int, str] = {}
    for time_s, kind, subject, extra in stream.events():
        if kind == events.SUBMITTED:
            run_s = float(campus.run_s[subject])
            yield time_s, partial(_submit, ids, subject, extra.user, extra.vo, run_s)
        elif kind == events.REMOVED:
            yield time_s, partial(_kill, ids, subject)
        elif kind in _MACHINE_ACTS:
            yield time_s, partial(_MACHINE_ACTS[kind], machine=campus.machine_names[subject])


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


_MACHINE_ACTS: Final = {
    events.OWNER_CAME: _came,
    events.OWNER_WENT: _went,
    events.USABLE: _opened,
    events.REBOOTED: _closed,
}


class Submission(msgspec.Struct, frozen=True, kw_only=True):
    """``[[jobs]]``: who submits what, and when."""

    user: Annotated[str, Meta(min_length=1)]
    run_s: Annotated[float, Meta(ge=0)]
    at_s: Annotated[float, Meta(ge=0)] = 0.0
    count: Annotated[int, Meta(ge=1)] = 1
    submit: dict[str, str] = {}

    @property
    def description(self) -> dict[str, str]:
        """The submit commands; what is executed does not matter."""
        return {"executable": "/bin/job", **self.submit}


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """``[[owners]]``: when the owner of a machine sits there; without an end, for good."""

    machine: str
    came_s: Annotated[float, Meta(ge=0)]
    went_s: Annotated[float, Meta(ge=0)] = math.inf


class PoolFile(msgspec.Struct, frozen=True, kw_only=True):
    """A pool written by hand."""

    machines: Annotated[list[dict[str, Any]], Meta(min_length=1)]
    jobs: list[dict[str, Any]] = []
    owners: list[dict[str, Any]] = []


def file_script(path: Path) -> Script:
    """A pool written by hand: ``[[machines]]``, ``[[jobs]]`` and ``[[owners]]`` in TOML.

    Raises:
        ConfigurationError: it cannot be read, or names the table and key that are wrong.
    """
    try:
        given = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{path}: cannot be read as TOML: {error}") from error
    file = build(PoolFile, given, str(path))
    machines = _rows(Machine, file.machines, f"{path} [[machines]]")
    names = {machine.name for machine in machines}
    happenings: list[Happening] = []
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
        happenings.append((visit.came_s, partial(MockPool.owner_came, machine=visit.machine)))
        if visit.went_s < math.inf:
            happenings.append((visit.went_s, partial(MockPool.owner_went, machine=visit.machine)))
    for job in _rows(Submission, file.jobs, f"{path} [[jobs]]"):
        try:
            job_ad(job.description, job.user, "", cluster=1, proc=0, now_s=0.0)
        except HTCondorException as error:
            raise ConfigurationError(f"{path} [[jobs]] of {job.user}: {error}") from error
        happenings.append((job.at_s, partial(_submit_by_hand, job)))
    happenings.sort(key=lambda happening: happening[0])
    return Script(machines, [], iter(happenings))


def _submit_by_hand(job: Submission, pool: MockPool) -> None:
    pool.submit(job.user, job.description, job.run_s, job.count)


def _rows(record: type[Any], rows: list[dict[str, Any]], where: str) -> list[Any]:
    return [build(record, row, f"{where} {number}") for number, row in enumerate(rows, 1)]
