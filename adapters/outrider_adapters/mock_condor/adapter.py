"""The `mock_condor` adapter: a scripted mock pool, watched by the same calls as a real one."""

import datetime as dt
import math
import random
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, NamedTuple, TypeAlias

import msgspec
from msgspec import Meta, field

from outrider.api import Batch, ClusterSpec, ConfigurationError, WaitingReason, build, events
from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus
from outrider.plugins.finding import stream
from outrider.simulation.exogenous_events import exogenous_events, owner_intervals
from outrider.simulation.generators.campus import generate_campus
from outrider_adapters.htcondor import (
    AccessPoint,
    CondorAdapter,
    PoolCalls,
    PoolWatch,
    WatchSettings,
    ask_why,
)
from outrider_adapters.htcondor.pool_calls import AdType, HTCondorException
from outrider_adapters.logtail import LogtailSettings
from outrider_adapters.mock_condor.ads import PoolConfig
from outrider_adapters.mock_condor.collector import OWNER_AWAY, Machine
from outrider_adapters.mock_condor.faults import Faults
from outrider_adapters.mock_condor.pool import MockPool
from outrider_adapters.mock_condor.submitting import job_ad

# -- settings --------------------------------------------------------------------------------------
# The settings of the `mock_condor` adapter, and the campus that they select.


class MockCondorSettings(WatchSettings, frozen=True, kw_only=True):
    """Settings of a mock pool: its machines and users, and the speed of its clock."""

    pool: Annotated[
        str | None,
        Meta(
            description="TOML file with machines, jobs and owners. Unset: a campus.",
            examples=["pool.toml"],
        ),
    ] = None
    campus: Annotated[
        str | None,
        Meta(
            description="Folder of a campus with owners and users. Unset: a generated one.",
            examples=["campus"],
        ),
    ] = None
    machines: Annotated[int, Meta(ge=1, description="Machines of a generated campus.")] = 40
    clusters: Annotated[
        int, Meta(ge=1, description="Machine groups (clusters) of a generated campus.")
    ] = 4
    weeks: Annotated[float, Meta(gt=0, description="Length of a generated campus, weeks.")] = 4.0
    start: Annotated[
        str,
        Meta(description="First day of a generated campus or hand-written pool, YYYY-MM-DD."),
    ] = "2010-02-01"
    seed: Annotated[int, Meta(ge=0, description="Seed of campus, matchmaking and faults.")] = 1
    speed: Annotated[float, Meta(gt=0, description="Pool seconds per real second.")] = 60.0
    head_start_s: Annotated[
        float, Meta(ge=0, description="Pool seconds simulated immediately at the beginning.")
    ] = 0.0
    look_s: Annotated[
        float, Meta(gt=0, description="Pool seconds between two polls of the pool.")
    ] = 60.0
    negotiator_interval_s: Annotated[
        float, Meta(gt=0, description="Pool seconds between two negotiation cycles.")
    ] = 60.0
    faults: Annotated[
        dict[str, float],
        Meta(description="Faults to inject between adapter and pool: see docs/mock-condor.md."),
    ] = field(default_factory=dict)


def campus_and_start(settings: MockCondorSettings) -> tuple[Campus | None, float]:
    """Return the campus, unless the pool is hand-written, and the Unix time of second 0.

    Returns:
        the campus or None, and Unix seconds; the campus's wall clock is read as UTC.

    Raises:
        ConfigurationError: the settings exclude each other, or `start` is not a date.
        TraceError: the folder of the campus cannot be read.
    """
    if settings.pool is not None and settings.campus is not None:
        raise ConfigurationError(
            f'"pool" = "{settings.pool}" and "campus" = "{settings.campus}" exclude each other; '
            "expected one of them"
        )
    if settings.campus is not None:
        campus = read_campus(Path(settings.campus))
        return campus, campus.start.replace(tzinfo=dt.UTC).timestamp()
    try:
        day = dt.date.fromisoformat(settings.start)
    except ValueError as error:
        raise ConfigurationError(
            f'"start" = {settings.start!r}: expected a date like "2010-02-01"'
        ) from error
    start_s = dt.datetime(day.year, day.month, day.day, tzinfo=dt.UTC).timestamp()
    if settings.pool is not None:
        return None, start_s
    campus = generate_campus(
        settings.seed,
        weeks=settings.weeks,
        machines=settings.machines,
        clusters=settings.clusters,
        start=day,
    )
    return campus, start_s


# -- scripts ---------------------------------------------------------------------------------------
# Scripts for a mock pool: when owners come and go and users submit and remove jobs.
#
# A script is made from a simulated campus or read from a hand-written file. Matches and evictions
# are not in it: they are decided by the pool.

ScriptEvent: TypeAlias = tuple[float, Callable[[MockPool], object]]
"""Time in seconds from the beginning, and a call on the pool."""

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
    """Return the script of a simulated campus: its owners, reboots, submissions and kills.

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
    """Table ``[[jobs]]``: a submission by a user at a time."""

    user: Annotated[str, Meta(min_length=1)]
    run_s: Annotated[float, Meta(ge=0)]
    at_s: Annotated[float, Meta(ge=0)] = 0.0
    count: Annotated[int, Meta(ge=1)] = 1
    submit: dict[str, str] = {}

    @property
    def description(self) -> dict[str, str]:
        """Submit commands of the job; the executable has no effect."""
        return {"executable": "/bin/job", **self.submit}


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """Table ``[[owners]]``: an owner's session at a machine; without an end it never ends."""

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
                f"{path} [[owners]]: went_s = {visit.went_s:g}: expected {visit.came_s:g} "
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


# -- adapter ---------------------------------------------------------------------------------------

_WATCHER: Final = "outrider"
"""User of the queries: no superuser, like a daemon in shadow mode."""
_MAX_EVENTS: Final = 2_000
_BUSY_FOR_S: Final = 0.25


class MockCondorAdapter(CondorAdapter):
    """Adapter of a mock HTCondor pool with its own clock.

    The pool's negotiator is the incumbent. The pool is polled at fixed times of its clock, so the
    same settings give the same events; the cursor is the number of polls ("looks"), and after a
    restart the pool is simulated up to there again.

    Raises:
        ConfigurationError: the settings contradict each other, or a file that they name is wrong.
        PluginError: HTCondor's Python bindings are not installed.
    """

    name: ClassVar[str] = "mock_condor"
    description: ClassVar[str] = "a mock HTCondor pool that evaluates real ClassAds"
    api_version = 1
    settings_type: ClassVar[type[WatchSettings]] = MockCondorSettings
    lateness_s = 0.0
    own_clock: ClassVar[bool] = True

    def __init__(self, label: str, settings: MockCondorSettings) -> None:
        super().__init__(label, settings)
        self._settings = settings
        self._faults = build(Faults, settings.faults, "faults")
        self._campus, self._start_s = campus_and_start(settings)
        self._clusters = self._script().clusters
        self._site: _WatchedPool | None = None
        self._closing = False

    def clusters(self) -> list[ClusterSpec]:
        """Return the campus's clusters, with opening hours; none for a hand-written pool."""
        return self._clusters

    def begin(self, cursor: Any) -> None:
        """Create the pool and simulate it up to the cursor."""
        self._closing = False
        try:
            looks = 0 if cursor is None else int(cursor["looks"])
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"no cursor of the mock_condor adapter: {cursor!r}") from error
        site = self._site = _WatchedPool(
            self._script(), self._settings, self._faults, self._start_s
        )
        while site.looks < looks and not self._closing:
            site.look()
        site.start_clock()

    def look(self) -> Batch:
        """Return the polls that are due, as one batch; an empty batch if none is."""
        site = self._site
        if site is None:
            raise RuntimeError("look() before begin()")
        batches: list[Batch] = []
        until_s = time.monotonic() + _BUSY_FOR_S
        while site.is_due() and time.monotonic() < until_s:
            batches.append(site.look())
            if sum(len(batch.events) for batch in batches) >= _MAX_EVENTS:
                break
        if not batches:
            return Batch(events=[], cursor={"looks": site.looks}, age_s=site.age_s)
        return _joined(batches, site.looks)

    async def waiting_reason(self, job: str) -> WaitingReason | None:
        """Return why a job is not running. Raises `PeerError`: the pool does not answer."""
        return await self.answer(lambda: None if self._site is None else self._site.why(job))

    def pause_s(self, batch: Batch) -> float:
        """Return the seconds until the next `look`; 0 while polls are due."""
        return 0.0 if self._site is not None and self._site.is_due() else _BUSY_FOR_S

    def end(self) -> None:
        """Close the pool and its log."""
        if self._site is not None:
            self._site.close()
            self._site = None

    async def __aexit__(self, *raised: Any) -> None:
        """Stop a simulation of the past that is in progress; then close."""
        self._closing = True
        await super().__aexit__(*raised)

    def _script(self) -> Script:
        if self._campus is not None:
            return campus_script(self._campus)
        return file_script(Path(self._settings.pool or ""))


class _WatchedPool:
    """The pool, its script, and the watch on it."""

    def __init__(
        self, script: Script, settings: MockCondorSettings, faults: Faults, start_s: float
    ) -> None:
        self.looks = 0
        self.age_s = 0.0
        self._settings = settings
        self._start_s = start_s
        self._script_events = script.script_events
        self._next = next(script.script_events, None)
        self._until_s = start_s + script.until_s
        self._began_s = float("inf")
        self._from_s = start_s
        self._folder = tempfile.TemporaryDirectory(prefix="mock-condor-")
        path = Path(self._folder.name) / "EventLog"
        self._log = path.open("w", encoding="utf-8")
        self._pool = MockPool(
            script.machines,
            now_s=start_s,
            rng=random.Random(stream(settings.seed, "mock_condor").random()),
            event_log=self._log,
            config=PoolConfig(negotiator_interval_s=settings.negotiator_interval_s),
            faults=faults,
            sleep=self._sleep,
        )
        name = self._pool.schedd_name
        point = AccessPoint(name, self._pool.schedd(_WATCHER), HTCondorException)
        calls = PoolCalls(self._pool.collector(), AdType.Startd, HTCondorException, (point,))
        # this thread also writes the log, so its records are always complete
        log = LogtailSettings(
            paths=(str(path),), format="htcondor", start_at="beginning", settle_s=0.0
        )
        self._calls = calls
        self._watch = PoolWatch(calls, {name: log}, settings, lambda: self._pool.now_s)
        self._watch.start(None)

    def look(self) -> Batch:
        """Advance the pool to the time of the next poll, and poll it."""
        pool = self._pool
        until_s = self._next_look_s()
        while self._next is not None and self._start_s + self._next[0] <= until_s:
            pool.advance(self._start_s + self._next[0])
            self._next[1](pool)
            self._next = next(self._script_events, None)
        pool.advance(until_s)
        self.looks += 1
        batch = self._watch.look()
        self.age_s = batch.age_s
        return batch

    def why(self, job: str) -> WaitingReason | None:
        """Return why a job is not running."""
        return ask_why(self._watch, self._calls, job)

    def start_clock(self) -> None:
        """Start the clock: from now on pool time follows real time."""
        self._began_s = time.monotonic()
        self._from_s = max(self._start_s + self._settings.head_start_s, self._pool.now_s)

    def is_due(self) -> bool:
        """Return whether the next poll is due; never after the end of the script."""
        ran_s = (time.monotonic() - self._began_s) * self._settings.speed
        return self._next_look_s() <= min(self._from_s + ran_s, self._until_s)

    def close(self) -> None:
        """Close the watch and delete the log."""
        self._watch.close()
        self._log.close()
        self._folder.cleanup()

    def _next_look_s(self) -> float:
        return self._start_s + self.looks * self._settings.look_s

    def _sleep(self, seconds: float) -> None:
        """Delay calls (`Faults.answer_delay_s`), but not while simulating the past."""
        if self._began_s < float("inf"):
            time.sleep(seconds)


def _joined(batches: list[Batch], looks: int) -> Batch:
    rejected: Counter[str] = Counter()
    ignored: Counter[str] = Counter()
    for batch in batches:
        rejected.update(batch.rejected)
        ignored.update(batch.ignored)
    last = batches[-1]
    return Batch(
        events=[event for batch in batches for event in batch.events],
        cursor={"looks": looks},
        seen_until_s=last.seen_until_s,
        age_s=last.age_s,
        rejected=dict(rejected),
        ignored=dict(ignored),
        note=last.note,
    )
