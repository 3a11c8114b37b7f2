"""CPUs in use over time, and their watts, by what became of the runs: the journal's, and open ones.

Watts are those of the table, as the energy accounting books runs on machines without a meter: each
CPU at work draws its share of what the busy machine does. The watts of machines that idle, sleep or
are used by their owners are not in it: the journal has no sums of these.
"""

import math
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from outrider.journal import Journal
from outrider.journal.run_sums import FATES
from outrider.service.core.core import Core
from outrider.service.views.curves import WITHIN_S, Curve, OpenJob, open_jobs
from outrider.service.views.kept_answers import KeptAnswers, Make

BINS: Final = 120
"""Equal parts of a window."""
WINDOWS: Final = {"1h": 3_600.0, "24h": 86_400.0, "7d": 7 * 86_400.0, "all": float("inf")}
"""Seconds before now, by their names; all: since the oldest run that is kept, or looked at."""
SHORTEST_S: Final = 60.0
OPEN: Final = "open"


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
            now_s, watts = core.site.now, watts_each(core)
            return lambda: read_use(window, now_s, jobs, journal, watts)

        return await self._kept.of(window, prepare)


def watts_each(core: Core) -> dict[int, tuple[str, float]]:
    """Name, and watts of one busy CPU by the table, of the machines of which they are known."""
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
) -> dict[str, Any]:
    """The series, read from a journal; may take a while. Raises `LedgerError`.

    Suspended stretches count as use, but draw no watts: those of a run that has ended are spread
    over its whole length, and a job that is suspended now draws none at all.

    Args:
        window: of `WINDOWS`.
        now_s: when it ends, event time.
        jobs: those that are here.
        path: of the journal.
        watts: as `watts_each` tells them.
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
    return {
        "window": window,
        "begin_s": begin_s,
        "end_s": now_s,
        "is_cut": is_cut,
        "time_s": [begin_s + part * step_s for part in range(BINS)],
        "cpus": {fate: curve.means() for fate, curve in curves.items()},
        "starts": starts,
        "table_w": {fate: curve.means() for fate, curve in power.items()},
        "watts_known_ratio": cpu_s_with_watts / cpu_s if cpu_s else None,
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
