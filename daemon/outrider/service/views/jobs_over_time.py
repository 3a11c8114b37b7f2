"""How many jobs waited and ran over time, by the journal's runs and the jobs that are here."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from outrider.journal import Journal
from outrider.service.core.core import Core
from outrider.service.views.curves import WITHIN_S, Curve, OpenJob, open_jobs
from outrider.service.views.kept_answers import KeptAnswers, Make

WINDOWS: Final = {"1h": (60, 60.0), "24h": (96, 900.0), "7d": (168, 3600.0)}
"""Bins, and the length of each in seconds; ``all`` has `BINS_OF_ALL`."""
BINS_OF_ALL: Final = 200
SHORTEST_BIN_S: Final = 60.0


class JobsOverTime:
    """The answers by window.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept = KeptAnswers("jobs-over-time", clock)

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

        async def prepare() -> Make:
            jobs = await open_jobs(core)
            now_s, since_s = core.now_s, core.accounting.begin_s
            return lambda: read_jobs(window, now_s, since_s, jobs, journal)

        return await self._kept.of(window, prepare)


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
