"""Jobs and CPUs over time, from the runs that the journal contains."""

import asyncio
import math
import time
from collections.abc import Awaitable, Callable, Mapping
from math import inf
from pathlib import Path
from typing import Final, Generic, NamedTuple, TypeAlias, TypeVar

from outrider.journal import Journal
from outrider.journal.run_sums import FATES, AtBins
from outrider.model.jobs import RUNNING, SUSPENDED_STATE
from outrider.service.core.core import Core
from outrider.service.host.threads import in_own_thread
from outrider.service.shapes.jobs import JobsOverTime, Window
from outrider.service.shapes.site import Cpus, TableWatts, Use
from outrider.service.shapes.values import Mode

# -- curves ----------------------------------------------------------------------------------------
# How many there were over time, from when each came and went: jobs that are here, and runs.

WITHIN_S: Final = 5.0
"""Maximum number of runs that are read from the journal for a curve."""
_JOBS_AT_A_TIME: Final = 2000


class OpenJob(NamedTuple):
    """Begin of the run or the wait of a job that is here.

    Attributes:
        job: its name, where a run before may say since when it waits; else empty.
        since_s: start of its run; of a job that waits, its submission; None: not known.
        cpus: of its run; 0: it waits, or is held.
        machine: number of the machine it runs on; -1: none.
        works: it runs, and is not suspended.
    """

    job: str
    since_s: float | None
    cpus: int
    machine: int = -1
    works: bool = False


class Curve:
    """Exact mean number of things present in each bin, from arrivals and departures."""

    def __init__(self, step_s: float, bins: int) -> None:
        self._step_s = step_s
        self._n = [0.0] * (bins + 1)
        self._sum_s = [0.0] * (bins + 1)

    def add(self, bin_: int, n: float, sum_s: float) -> None:
        """Add arrivals in a bin (-1: before the first), with the sum of their offsets in s."""
        if bin_ + 1 < len(self._n):
            self._n[bin_ + 1] += n
            self._sum_s[bin_ + 1] += sum_s

    def come(self, offset_s: float, n: float = 1.0) -> None:
        """Add arrivals at an offset from the begin of the first bin; negative: before it."""
        self.add(-1 if offset_s < 0 else int(offset_s / self._step_s), n, n * offset_s)

    def add_runs(self, starts: list[AtBins], ends: list[AtBins]) -> None:
        """Add all arrivals and departures, as summed up by the journal."""
        for one in starts:
            self.add(one.bin, one.n, one.sum_s)
        for one in ends:
            self.add(one.bin, -one.n, -one.sum_s)

    def means(self) -> list[float]:
        """Return the mean of each bin, never below 0."""
        found, area, n, sum_s = [], 0.0, 0.0, 0.0
        for edge, (more, more_s) in enumerate(zip(self._n, self._sum_s, strict=True)):
            # At an edge all are counted that came in the bins before it.
            n, sum_s = n + more, sum_s + more_s
            here = n * edge * self._step_s - sum_s
            if edge:
                found.append(max(0.0, round((here - area) / self._step_s, 6)))
            area = here
        return found


async def open_jobs(core: Core) -> list[OpenJob]:
    """Return the jobs that are here; other tasks may run in between."""
    found = []
    names = core.merger.normaliser.job_names
    for place, job in enumerate(tuple(core.site.jobs.values())):
        if place % _JOBS_AT_A_TIME == 0:
            await asyncio.sleep(0)
        if core.site.jobs.get(job.number) is not job:
            continue  # it left meanwhile
        if job.state in (RUNNING, SUSPENDED_STATE):
            found.append(OpenJob("", job.start_s, job.cpus, job.machine, job.state == RUNNING))
        else:
            found.append(OpenJob(names[job.number] if job.runs else "", job.submit_s, 0))
    return found


# -- jobs over time --------------------------------------------------------------------------------
# How many jobs waited and ran over time, by the journal's runs and the jobs that are here.

JOB_WINDOWS: Final = {"1h": (60, 60.0), "24h": (96, 900.0), "7d": (168, 3600.0)}
"""Number of bins and seconds of each, by window; ``all`` has `BINS_OF_ALL` bins."""
BINS_OF_ALL: Final = 200
SHORTEST_BIN_S: Final = 60.0


class KeptJobsOverTime:
    """The answers by window.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept = KeptAnswers[JobsOverTime]("jobs-over-time", clock)

    async def of(self, window: Window, core: Core, journal: Path) -> JobsOverTime:
        """Return jobs over time in a window that ends now, for `api/v1/jobs-over-time`.

        The journal is read in a thread of its own, and the jobs that are here a few at a time.

        Args:
            window: of `JOB_WINDOWS`, or ``all``.
            core: the daemon's.
            journal: its file.

        Raises:
            LedgerError: the journal cannot be read, or not within `WITHIN_S`.
            TimeoutError: its disk does not answer.
        """

        async def prepare() -> Make[JobsOverTime]:
            jobs = await open_jobs(core)
            now_s, since_s, mode = core.now_s, core.accounting.begin_s, core.config.mode
            return lambda: read_jobs(window, now_s, since_s, jobs, journal, mode)

        return await self._kept.of(window, prepare)


def read_jobs(
    window: Window,
    now_s: float,
    since_s: float | None,
    jobs: list[OpenJob],
    path: Path,
    mode: Mode,
) -> JobsOverTime:
    """Return the series, read from a journal; may take seconds. Raises `LedgerError`.

    Args:
        window: of `JOB_WINDOWS`, or ``all``.
        now_s: when it ends.
        since_s: since when the daemon has counted; None: it has not begun.
        jobs: those that are here.
        path: of the journal.
        mode: of the daemon.
    """
    with Journal(path, read_only=True) as journal:
        bins, step_s = JOB_WINDOWS.get(window) or _bins_of_all(journal, now_s)
        begin_s = now_s - bins * step_s
        sums = journal.run_sums(begin_s, step_s, now_s, WITHIN_S)
        waiting, running = Curve(step_s, bins), Curve(step_s, bins)
        if sums is not None:
            running.add_runs(sums.starts, sums.ends)
            waiting.add_runs(sums.wait_starts, sums.wait_ends)
        deadline_s = time.monotonic() + WITHIN_S
        for job in jobs:
            since = job.since_s
            if job.job and time.monotonic() < deadline_s:
                since = journal.last_end_of_run(job.job) or since
            if since is not None:
                (running if job.cpus else waiting).come(since - begin_s)
    kept_from_s = None if sums is None else sums.kept_from_s
    known = [one for one in (kept_from_s, since_s) if one is not None]
    known_from_s = min(known) if known else now_s
    unknown = sum(begin_s + place * step_s < known_from_s for place in range(bins))

    def shown(values: list[float]) -> list[float | None]:
        return [None] * unknown + values[unknown:]

    return JobsOverTime(
        mode=mode,
        window=window,
        now_s=now_s,
        begin_s=begin_s,
        step_s=step_s,
        known_from_s=known_from_s,
        waiting=shown(waiting.means()),
        running=shown(running.means()),
    )


def _bins_of_all(journal: Journal, now_s: float) -> tuple[int, float]:
    first_s = journal.first_run_end_s()
    span_s = max(0.0 if first_s is None else now_s - first_s, SHORTEST_BIN_S * BINS_OF_ALL)
    return BINS_OF_ALL, span_s / BINS_OF_ALL


# -- use over time ---------------------------------------------------------------------------------
# CPUs in use over time, and their watts, by what became of the runs: the journal's, and open ones.
#
# Watts are those of the table, as the energy accounting books runs on machines without a meter:
# each CPU at work draws its share of what the busy machine does. The watts of machines that idle,
# sleep or are used by their owners are not in it: the journal has no sums of these.

BINS: Final = 120
"""Number of equal parts of a window."""
USE_WINDOWS: Final = {"1h": 3_600.0, "24h": 86_400.0, "7d": 7 * 86_400.0, "all": float("inf")}
"""Seconds before now, by window; `all`: since the oldest run that is kept or read."""
SHORTEST_S: Final = 60.0
OPEN: Final = "open"


class KeptUseOverTime:
    """The answers by window.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept = KeptAnswers[Use]("use-over-time", clock)

    async def of(self, window: str, core: Core, journal: Path) -> Use:
        """Return CPU use in a window that ends now, for `api/v1/use`.

        Args:
            window: of `USE_WINDOWS`.
            core: the daemon's.
            journal: its file.

        Raises:
            LedgerError: the journal cannot be read, or not within `WITHIN_S`.
            TimeoutError: its disk does not answer.
        """

        async def prepare() -> Make[Use]:
            jobs = await open_jobs(core)
            now_s, watts, mode = core.site.now, watts_each(core), core.config.mode
            return lambda: read_use(window, now_s, jobs, journal, watts, mode)

        return await self._kept.of(window, prepare)


def watts_each(core: Core) -> dict[int, tuple[str, float]]:
    """Return the declared watts of one busy CPU, by name of the machine, where known."""
    names = core.merger.normaliser.machine_names
    return {
        m: (names[m], spec.active_w / max(1, spec.cpus))
        for m, spec in enumerate(core.site.specs)
        if spec is not None and spec.active_w is not None and math.isfinite(spec.active_w)
    }


def read_use(
    window: str,
    now_s: float,
    jobs: list[OpenJob],
    path: Path,
    watts: Mapping[int, tuple[str, float]],
    mode: Mode,
) -> Use:
    """Return the series, read from a journal; may take seconds. Raises `LedgerError`.

    Suspended stretches count as use, but draw no watts: those of a run that has ended are spread
    over its whole length, and a job that is suspended now draws none at all.

    Args:
        window: of `USE_WINDOWS`.
        now_s: when it ends, event time.
        jobs: those that are here.
        path: of the journal.
        watts: as `watts_each` tells them.
        mode: of the daemon.
    """
    with Journal(path, read_only=True) as journal:
        begin_s, is_cut = _begin(journal, window, now_s)
        step_s = (now_s - begin_s) / BINS
        by_name = dict(watts.values())
        sums = journal.run_sums(begin_s, step_s, now_s, WITHIN_S, waits=False, watts=by_name)
    curves = {fate: Curve(step_s, BINS) for fate in (*FATES, OPEN)}
    power = {fate: Curve(step_s, BINS) for fate in (*FATES, OPEN)}
    cpu_s = cpu_s_with_watts = 0.0
    starts = [0] * BINS
    if sums is not None:
        for fate in FATES:
            curves[fate].add_runs(sums.cpu_starts[fate], sums.cpu_ends[fate])
            power[fate].add_runs(sums.watt_starts[fate], sums.watt_ends[fate])
        cpu_s, cpu_s_with_watts = sums.cpu_s, sums.cpu_s_with_watts
        for one in sums.starts:
            if one.bin >= 0:
                starts[min(one.bin, BINS - 1)] += int(one.n)
    for job in jobs:
        if job.cpus and job.since_s is not None:
            offset_s = job.since_s - begin_s
            curves[OPEN].come(offset_s, job.cpus)
            if job.works:
                at_work_s = job.cpus * (now_s - job.since_s)
                cpu_s += at_work_s
                if job.machine in watts:
                    cpu_s_with_watts += at_work_s
                    power[OPEN].come(offset_s, job.cpus * watts[job.machine][1])
            if offset_s >= 0:
                starts[min(int(offset_s / step_s), BINS - 1)] += 1
    cpus = {fate: curve.means() for fate, curve in curves.items()}
    table_w = {fate: curve.means() for fate, curve in power.items()}
    return Use(
        mode=mode,
        window=window,
        begin_s=begin_s,
        end_s=now_s,
        is_cut=is_cut,
        time_s=[begin_s + part * step_s for part in range(BINS)],
        cpus=Cpus(**cpus),
        starts=starts,
        table_w=TableWatts(**table_w),
        watts_known_ratio=cpu_s_with_watts / cpu_s if cpu_s else None,
    )


def _begin(journal: Journal, window: str, now_s: float) -> tuple[float, bool]:
    """Return when the window begins, and whether that is later than was asked for."""
    begin_s = now_s - USE_WINDOWS[window]
    reach = journal.runs_reach(WITHIN_S)
    is_cut = reach is not None and not reach.is_all and reach.end_s >= begin_s
    if is_cut or window == "all":  # before the oldest end that is looked at nothing is whole
        oldest_s = now_s if reach is None else reach.end_s if is_cut else reach.start_s
        begin_s = max(begin_s, oldest_s)
    return min(begin_s, now_s - SHORTEST_S), is_cut


# -- kept answers ----------------------------------------------------------------------------------
# Cache of answers that are computed in a thread, at most one computation per kind at a time.

PATIENCE_S: Final = 20.0
"""Seconds that a client waits for an answer, in case a disk hangs."""
FRESH_S: Final = 15.0
PAUSES: Final = 10.0
"""Cache lifetime in multiples of the time that an answer took to compute.

An answer is kept for at least `FRESH_S`, a failure is not."""
A = TypeVar("A")
Make: TypeAlias = Callable[[], A]
"""Computes the answer; called in a separate thread."""


class KeptAnswers(Generic[A]):
    """Answers by their names.

    Args:
        name: of the threads.
        clock: seconds that only grow.
        most: so many answers are kept or being made; the oldest give way.
    """

    def __init__(
        self, name: str, clock: Callable[[], float] = time.monotonic, most: int = 16
    ) -> None:
        self._name = name
        self._clock = clock
        self._most = most
        self._asked: dict[str, asyncio.Future[A]] = {}
        self._fresh_until_s: dict[str, float] = {}

    async def of(self, key: str, prepare: Callable[[], Awaitable[Make[A]]]) -> A:
        """Return the answer of this name from the cache, or compute it.

        Args:
            key: its name.
            prepare: gathers on the event loop what the new one is made from.

        Raises:
            TimeoutError: it takes longer than `PATIENCE_S`, and who asks later may get it; or too
                many others are being made.
            Exception: what making it raised.
        """
        if not self._holds(key):
            make = await prepare()
            if not self._holds(key):
                self._make_room(key)
                began_s = self._clock()
                asked = in_own_thread(make, self._name)
                self._asked[key] = asked
                self._fresh_until_s.pop(key, None)
                asked.add_done_callback(lambda done: self._keep(key, began_s, done))
        return await asyncio.wait_for(asyncio.shield(self._asked[key]), PATIENCE_S)

    def _holds(self, key: str) -> bool:
        asked = self._asked.get(key)
        if asked is None or asked.get_loop() is not asyncio.get_running_loop():
            return False
        return not asked.done() or self._clock() < self._fresh_until_s.get(key, inf)

    def _make_room(self, key: str) -> None:
        self._asked.pop(key, None)
        made = [one for one, asked in self._asked.items() if asked.done()]
        for oldest in made[: max(0, len(self._asked) + 1 - self._most)]:
            del self._asked[oldest], self._fresh_until_s[oldest]
        if len(self._asked) >= self._most:
            raise TimeoutError(f"{self._most} answers are being made already")

    def _keep(self, key: str, began_s: float, done: "asyncio.Future[A]") -> None:
        now_s = self._clock()
        is_good = not done.cancelled() and done.exception() is None
        least_s = FRESH_S if is_good else 0.0
        self._fresh_until_s[key] = now_s + max(least_s, PAUSES * (now_s - began_s))
