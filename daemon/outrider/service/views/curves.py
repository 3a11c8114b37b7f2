"""How many there were over time, from when each came and went: jobs that are here, and runs."""

import asyncio
from typing import Final, NamedTuple

from outrider.journal.run_sums import AtBins
from outrider.model.jobs import RUNNING, SUSPENDED_STATE
from outrider.service.core.core import Core

WITHIN_S: Final = 5.0
"""What reading the journal for a curve may take."""
_JOBS_AT_A_TIME: Final = 2000


class OpenJob(NamedTuple):
    """A job that is here: since when it runs or waits.

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

    def come(self, offset_s: float, n: float = 1.0) -> None:
        """So many came this long after the first bin began; negative: before."""
        self.add(-1 if offset_s < 0 else int(offset_s / self._step_s), n, n * offset_s)

    def add_runs(self, starts: list[AtBins], ends: list[AtBins]) -> None:
        """All that came and went, as the journal sums them up."""
        for one in starts:
            self.add(one.bin, one.n, one.sum_s)
        for one in ends:
            self.add(one.bin, -one.n, -one.sum_s)

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
            found.append(OpenJob("", job.start_s, job.cpus, job.machine, job.state == RUNNING))
        else:
            found.append(OpenJob(names[job.number] if job.runs else "", job.submit_s, 0))
    return found
