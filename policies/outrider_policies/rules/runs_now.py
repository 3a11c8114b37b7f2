"""The runs of a site, those that begin in the present scheduling pass included."""

from collections.abc import Iterable
from itertools import chain
from math import nan

from outrider.api import Job, SiteView


class RunsNow:
    """What runs now: the site shows a run only once it has begun, which is after the pass."""

    def __init__(self) -> None:
        self._moment_s = nan
        self._starting: dict[int, tuple[Job, int]] = {}

    def start(self, job: Job, view: SiteView) -> None:
        """A job is to start in this pass."""
        self._forget_before(view.now)
        self._starting[job.number] = (job, job.runs)

    def jobs(self, view: SiteView) -> Iterable[Job]:
        """The jobs that run or are to start in this pass, each once."""
        self._forget_before(view.now)
        # of those that began meanwhile the site knows better
        starting = (job for job, runs in self._starting.values() if job.runs == runs)
        return chain(view.running, starting)

    def _forget_before(self, now: float) -> None:
        if now != self._moment_s:
            self._moment_s = now
            self._starting.clear()
