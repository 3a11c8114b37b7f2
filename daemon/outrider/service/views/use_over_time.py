"""CPUs in use over time, by what became of their runs: the journal's, and those that go on."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from outrider.ledger import Journal
from outrider.ledger.run_sums import FATES
from outrider.service.core import Core
from outrider.service.views.curves import WITHIN_S, Curve, OpenJob, open_jobs
from outrider.service.views.kept_answers import KeptAnswers, Make

BINS: Final = 120
"""Equal parts of a window."""
WINDOWS: Final = {"1h": 3_600.0, "24h": 86_400.0, "7d": 7 * 86_400.0, "all": float("inf")}
"""Seconds before now, by their names; all: since the oldest run that is kept, or looked at."""
SHORTEST_S: Final = 60.0


class UseOverTime:
    """The answers by window.

    Args:
        clock: seconds that only grow.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._kept = KeptAnswers("use-over-time", clock)

    async def of(self, window: str, core: Core, journal: Path) -> dict[str, Any]:
        """CPUs in a window that ends now, as `api/v1/use` has them, without the mode.

        Args:
            window: of `WINDOWS`.
            core: the daemon's.
            journal: its file.

        Raises:
            LedgerError: the journal cannot be read, or not within `WITHIN_S`.
            TimeoutError: its disk does not answer.
        """

        async def prepare() -> Make:
            jobs = await open_jobs(core)
            now_s = core.site.now
            return lambda: read_use(window, now_s, jobs, journal)

        return await self._kept.of(window, prepare)


def read_use(window: str, now_s: float, jobs: list[OpenJob], path: Path) -> dict[str, Any]:
    """The series, read from a journal; may take a while. Raises `LedgerError`.

    Suspended stretches count as use.

    Args:
        window: of `WINDOWS`.
        now_s: when it ends, event time.
        jobs: those that are here.
        path: of the journal.
    """
    with Journal(path, read_only=True) as journal:
        begin_s, is_cut = _begin(journal, window, now_s)
        step_s = (now_s - begin_s) / BINS
        sums = journal.run_sums(begin_s, step_s, now_s, WITHIN_S, waits=False)
    curves = {fate: Curve(step_s, BINS) for fate in FATES}
    open_ = Curve(step_s, BINS)
    starts = [0] * BINS
    if sums is not None:
        for fate, curve in curves.items():
            curve.add_runs(sums.cpu_starts[fate], sums.cpu_ends[fate])
        for one in sums.starts:
            if one.bin >= 0:
                starts[min(one.bin, BINS - 1)] += int(one.n)
    for job in jobs:
        if job.cpus and job.since_s is not None:
            offset_s = job.since_s - begin_s
            open_.come(offset_s, job.cpus)
            if offset_s >= 0:
                starts[min(int(offset_s / step_s), BINS - 1)] += 1
    return {
        "window": window,
        "begin_s": begin_s,
        "end_s": now_s,
        "is_cut": is_cut,
        "time_s": [begin_s + part * step_s for part in range(BINS)],
        "cpus": {
            **{fate: curve.means() for fate, curve in curves.items()},
            "open": open_.means(),
        },
        "starts": starts,
    }


def _begin(journal: Journal, window: str, now_s: float) -> tuple[float, bool]:
    """When the window begins, and whether that is later than was asked for."""
    begin_s = now_s - WINDOWS[window]
    reach = journal.runs_reach(WITHIN_S)
    is_cut = reach is not None and not reach.is_all and reach.end_s >= begin_s
    if is_cut or window == "all":  # before the oldest end that is looked at nothing is whole
        oldest_s = now_s if reach is None else reach.end_s if is_cut else reach.start_s
        begin_s = max(begin_s, oldest_s)
    return min(begin_s, now_s - SHORTEST_S), is_cut
