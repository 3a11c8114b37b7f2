"""How many jobs waited and ran over time, by the journal's runs and the jobs that are here."""

import asyncio
import time
from collections.abc import Callable
from math import inf
from pathlib import Path
from typing import Any, Final, NamedTuple

from outrider.ledger import Journal
from outrider.model.jobs import RUNNING, SUSPENDED_STATE
from outrider.service.core import Core
from outrider.service.own_thread import in_own_thread

WINDOWS: Final = {"1h": (60, 60.0), "24h": (96, 900.0), "7d": (168, 3600.0)}
"""Bins, and the length of each in seconds; ``all`` has `BINS_OF_ALL`."""
BINS_OF_ALL: Final = 200
SHORTEST_BIN_S: Final = 60.0

WITHIN_S: Final = 5.0
"""What reading may take."""
PATIENCE_S: Final = 20.0
"""So long a client waits for it: a disk that hangs holds up no more."""
FRESH_S: Final = 15.0
PAUSES: Final = 10.0
"""An answer is shown for so many times as long as it took to make, and for `FRESH_S` at least."""
_JOBS_AT_A_TIME: Final = 2000


class OpenJob(NamedTuple):
    """A job that is here: since when it runs or waits.

    Attributes:
        job: its name, where a run before may say since when it waits; else empty.
        since_s: start of its run; of a job that waits, its submission; None: not known.
        runs: or waits, or is held.
    """

    job: str
    since_s: float | None
    runs: bool


class Curve:
    """The mean number of things there in each bin, from when each came and went. Exact."""

    def __init__(self, step_s: float, bins: int) -> None:
        self._step_s = step_s
        self._n = [0.0] * (bins + 1)
        self._sum_s = [0.0] * (bins + 1)

    def add(self, bin_: int, n: float, sum_s: float) -> None:
        """So many came in a bin (-1: before the first), with the sum of their offsets in s."""
        if bin_ + 1 < len(self._n):
            self._n[bin_ + 1] += n
            self._sum_s[bin_ + 1] += sum_s

    def come(self, offset_s: float) -> None:
        """One came this long after the first bin began; negative: before."""
        self.add(-1 if offset_s < 0 else int(offset_s / self._step_s), 1.0, offset_s)

    def means(self) -> list[float]:
        """Of each bin; never below 0."""
        found, area, n, sum_s = [], 0.0, 0.0, 0.0
        for edge, (more, more_s) in enumerate(zip(self._n, self._sum_s, strict=True)):
            # At an edge all are counted that came in the bins before it.
            n, sum_s = n + more, sum_s + more_s
            here = n * edge * self._step_s - sum_s
            if edge:
                found.append(max(0.0, round((here - area) / self._step_s, 6)))
            area = here
        return found


class JobsOverTime:
    """Answers, each kept for a while; of a window at most one is being made.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._fresh_until_s: dict[str, float] = {}

    async def of(self, window: str, core: Core, journal: Path) -> dict[str, Any]:
        """Jobs in a window that ends now, as `api/v1/jobs-over-time` has them, without the mode.

        The journal is read in a thread of its own, and the jobs that are here a few at a time.

        Args:
            window: of `WINDOWS`, or ``all``.
            core: the daemon's.
            journal: its file.

        Raises:
            LedgerError: the journal cannot be read, or not within `WITHIN_S`.
            TimeoutError: its disk does not answer.
        """
        if not self._holds(window):
            jobs = await open_jobs(core)
            if not self._holds(window):
                began_s, now_s, since_s = self._clock(), core.now_s, core.accounting.begin_s
                asked = in_own_thread(
                    lambda: read_jobs(window, now_s, since_s, jobs, journal), "jobs-over-time"
                )
                self._asked[window] = asked
                self._fresh_until_s.pop(window, None)
                asked.add_done_callback(lambda _: self._keep(window, began_s))
        return await asyncio.wait_for(asyncio.shield(self._asked[window]), PATIENCE_S)

    def _holds(self, window: str) -> bool:
        asked = self._asked.get(window)
        if asked is None or asked.get_loop() is not asyncio.get_running_loop():
            return False
        return not asked.done() or self._clock() < self._fresh_until_s.get(window, inf)

    def _keep(self, window: str, began_s: float) -> None:
        now_s = self._clock()
        self._fresh_until_s[window] = now_s + max(FRESH_S, PAUSES * (now_s - began_s))


async def open_jobs(core: Core) -> list[OpenJob]:
    """The jobs that are here; others get their turn in between."""
    found = []
    names = core.merger.normaliser.job_names
    for place, job in enumerate(tuple(core.site.jobs.values())):
        if place % _JOBS_AT_A_TIME == 0:
            await asyncio.sleep(0)
        if core.site.jobs.get(job.number) is not job:
            continue  # it left meanwhile
        if job.state in (RUNNING, SUSPENDED_STATE):
            found.append(OpenJob("", job.start_s, True))
        else:
            found.append(OpenJob(names[job.number] if job.runs else "", job.submit_s, False))
    return found


def read_jobs(
    window: str, now_s: float, since_s: float | None, jobs: list[OpenJob], path: Path
) -> dict[str, Any]:
    """The series, read from a journal; may take a while. Raises `LedgerError`.

    Args:
        window: of `WINDOWS`, or ``all``.
        now_s: when it ends.
        since_s: since when the daemon has counted; None: it has not begun.
        jobs: those that are here.
        path: of the journal.
    """
    with Journal(path, read_only=True) as journal:
        bins, step_s = WINDOWS.get(window) or _bins_of_all(journal, now_s)
        begin_s = now_s - bins * step_s
        sums = journal.run_sums(begin_s, step_s, now_s, WITHIN_S)
        waiting, running = Curve(step_s, bins), Curve(step_s, bins)
        if sums is not None:
            for curve, come, gone in (
                (running, sums.starts, sums.ends),
                (waiting, sums.wait_starts, sums.wait_ends),
            ):
                for one in come:
                    curve.add(one.bin, one.n, one.sum_s)
                for one in gone:
                    curve.add(one.bin, -one.n, -one.sum_s)
        deadline_s = time.monotonic() + WITHIN_S
        for job in jobs:
            since = job.since_s
            if job.job and time.monotonic() < deadline_s:
                since = journal.last_end_of_run(job.job) or since
            if since is not None:
                (running if job.runs else waiting).come(since - begin_s)
    kept_from_s = None if sums is None else sums.kept_from_s
    known = [one for one in (kept_from_s, since_s) if one is not None]
    known_from_s = min(known) if known else now_s
    unknown = sum(begin_s + place * step_s < known_from_s for place in range(bins))

    def shown(values: list[float]) -> list[float | None]:
        return [None] * unknown + values[unknown:]

    return {
        "window": window,
        "now_s": now_s,
        "begin_s": begin_s,
        "step_s": step_s,
        "known_from_s": known_from_s,
        "waiting": shown(waiting.means()),
        "running": shown(running.means()),
    }


def _bins_of_all(journal: Journal, now_s: float) -> tuple[int, float]:
    first_s = journal.first_run_end_s()
    span_s = max(0.0 if first_s is None else now_s - first_s, SHORTEST_BIN_S * BINS_OF_ALL)
    return BINS_OF_ALL, span_s / BINS_OF_ALL
