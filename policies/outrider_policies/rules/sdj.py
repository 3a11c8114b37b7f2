"""Short deadline jobs, as EGEE sites ran them: at once in a reserved slot, or refused."""

import random
from math import nan
from typing import Annotated, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import NOWHERE, Choice, Job, Policy, PolicySettings, Queue, Ranks, SiteView
from outrider_policies.rules.runs_now import RunsNow

_AT_ONCE: Final = "at_once"
_REFUSED: Final = "refused"


class SdjSettings(PolicySettings, frozen=True):
    """The share of the site that is reserved for interactive jobs."""

    reserved_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of the CPUs that batch jobs never get. More refuses fewer "
            "interactive jobs, and lets more CPUs stand idle.",
        ),
    ] = 0.1


class ShortDeadlineJobs(Ranks, Policy[SdjSettings]):
    """An interactive job starts when it is submitted, in a reserved slot or any other, or never.

    Section II.B of Perez et al. 2008: "the job will either immediately start executing or be
    rejected if no resource is available". A refused job is treated as if resubmitted as a batch
    job: it goes to the end of the queue, and its start has the reason ``refused``. Batch jobs
    start in order of submission, on CPUs that are not reserved. Slots are only counted:
    interactive runs take reserved ones first.
    """

    name = "sdj"
    description = "interactive jobs start at once in reserved slots or are refused; batch is FIFO"
    api_version = 1
    features = ("job_class", "submit_s")

    def __init__(self, settings: SdjSettings, rng: random.Random) -> None:
        super().__init__(settings, rng)
        self.ranks_anew = True
        self._moment_s = nan
        self._new: set[int] = set()
        self._runs = RunsNow()

    def _at_moment(self, now: float) -> None:
        """Forget the jobs submitted before this moment."""
        if now != self._moment_s:
            self._moment_s = now
            self._new.clear()

    def on_enqueue(self, job: Job, view: SiteView) -> None:
        """Note that the job is new: at this moment only, it may start at once."""
        self._at_moment(view.now)
        self._new.add(job.number)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Interactive jobs of this moment, then all others in order, if CPUs are left for them.

        If none are, the first of the others waits, and no job passes it.
        """
        self._at_moment(view.now)
        places = np.arange(len(queue.jobs), dtype=float)
        new = queue.interactive & [job.number in self._new for job in queue.jobs]
        if not new.all():
            first = int(np.argmin(new))
            if queue.cpus[first] > self._cpus_for_batch(view):
                places[~new] = nan
        places[new] -= len(places)
        return places

    def _cpus_for_batch(self, view: SiteView) -> int:
        """Free CPUs, less reserved ones that no interactive run uses."""
        settings: SdjSettings = self.settings
        cpus_n = view.open_cpus
        filled = sum(
            run.cpus for run in self._runs.jobs(view) if run.spec.job_class == "interactive"
        )
        reserved = int(settings.reserved_ratio * cpus_n)
        return sum(map(view.cpus_left, view.free_since)) - max(0, reserved - filled)

    def choose(self, job: Job, evaluation: object, view: SiteView, may_defer: bool) -> Choice:
        """The tightest machine that suffices."""
        choice = super().choose(job, evaluation, view, may_defer)
        if choice.machine != NOWHERE and job.spec.job_class == "interactive":
            self._at_moment(view.now)
            self._runs.start(job, view)
            choice.reason = _AT_ONCE if job.number in self._new else _REFUSED
        return choice
