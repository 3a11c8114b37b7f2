"""Rules that rank the queue by a score of each job: SJF, EDF, WFP3, UNICEP, F1, SDJ."""

import random
from math import log10, nan
from typing import Annotated, Any, Final

import numpy as np
from msgspec import Meta
from numpy.typing import NDArray

from outrider.api import (
    NOWHERE,
    Choice,
    Job,
    Orders,
    Policy,
    PolicySettings,
    Queue,
    Ranks,
    SiteView,
)
from outrider_policies.rules.placements import LAST, longest_free
from outrider_policies.rules.shares import RunsNow

# -- sjf -------------------------------------------------------------------------------------------
# Shortest job first, by the estimates that users or the batch system gave.


class ShortestJobFirst(Orders, Policy):
    """The queued job of the least estimated run time goes to the longest-free machine.

    Jobs without an estimate come after all others, in order of submission. Long jobs may starve
    while short ones keep coming: that is the price of the least mean wait.
    """

    name = "sjf"
    description = "shortest estimated run time first, on the machine that has been free the longest"
    api_version = 1
    features = ("estimate_s",)

    def order(self, job: Job, view: SiteView) -> float:
        """Estimated run time, seconds."""
        return LAST if job.spec.estimate_s is None else job.spec.estimate_s

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The longest-free machine with enough CPUs; never defers a job."""
        return longest_free(job, view, "shortest")

    def explain(self, job: Job, view: SiteView) -> str:
        """How the job is ordered."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        return f"jobs estimated to run less than {estimate_s / 60:.0f} min start before it"


# -- edf -------------------------------------------------------------------------------------------
# Earliest deadline first: deadlines by class and estimated run time.


class EdfSettings(PolicySettings, frozen=True):
    """Terms of a job's deadline, in seconds after it became eligible."""

    interactive_s: Annotated[
        float,
        Meta(ge=0, description="From submission to the deadline of interactive jobs, seconds."),
    ] = 300.0
    batch_s: Annotated[
        float, Meta(ge=0, description="From submission to the deadline of batch jobs, seconds.")
    ] = 14_400.0
    stretch_ratio: Annotated[
        float,
        Meta(
            ge=0,
            description="Added for each estimated second of run time: above 0, short jobs of a "
            "class come before long ones of about the same age.",
        ),
    ] = 1.0


class EarliestDeadlineFirst(Orders, Policy[EdfSettings]):
    """The queued job of the earliest deadline goes to the longest-free machine.

    Deadline = submission (or when it became eligible) + time of its class + stretch x estimate.
    Deadlines are fixed, so a queued job moves to the front: none starves. A job whose submission
    time is unknown counts as the oldest.
    """

    name = "edf"
    description = "earliest deadline first: submission + time of the class + stretch x estimate"
    api_version = 1
    features = ("submit_s", "job_class", "estimate_s")

    def order(self, job: Job, view: SiteView) -> float:
        """The deadline, seconds of event time."""
        if job.submit_s is None:
            return float("-inf")
        settings: EdfSettings = self.settings
        spec = job.spec
        promise_s = settings.interactive_s if spec.job_class == "interactive" else settings.batch_s
        eligible_s = max(job.submit_s, spec.eligible_s or job.submit_s)
        return eligible_s + promise_s + settings.stretch_ratio * (spec.estimate_s or 0.0)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """The longest-free machine with enough CPUs; never defers a job."""
        return longest_free(job, view, "deadline")

    def explain(self, job: Job, view: SiteView) -> str:
        """The time until its deadline."""
        left_s = self.order(job, view) - view.now
        if left_s == float("-inf"):
            return "its submission time is unknown: it counts as the oldest and starts first"
        when = f"in {left_s / 60:.0f} min" if left_s >= 0 else f"{-left_s / 60:.0f} min ago"
        return f"its deadline is {when}; jobs with an earlier one start before it"


# -- wfp3 ------------------------------------------------------------------------------------------
# WFP3: jobs with a long wait for their estimate, and wide ones, come first.

_SHORTEST_S = 1.0


class Wfp3(Ranks, Policy):
    """The greatest (wait / estimate)^3 x CPUs comes first.

    Tang, Lan, Desai, Buettner: "Fault-aware, utility-based job scheduling on Blue Gene/P systems",
    IEEE Cluster 2009, the utility function WFP with its exponent 3. The cube soon puts a job
    that waited longer than its estimate before all others; the factor CPUs keeps wide jobs from
    starving.

    The estimate is the site's estimate of the run time, at least 1 s. Jobs without an estimate
    come after all others, by age.
    """

    name = "wfp3"
    description = "greatest (wait / estimated run time)^3 x CPUs first (Tang et al. 2009)"
    api_version = 1
    features = ("submit_s", "estimate_s", "cpus")

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Less than 0, the least first; `LAST` without an estimate."""
        waits = (view.now - queue.submit_s) / np.maximum(queue.estimate_s, _SHORTEST_S)
        places: NDArray[np.float64] = -(waits**3) * queue.cpus
        places[np.isnan(places)] = LAST
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """The wait in relation to the estimate, and the resulting priority."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        wait = (job.wait_s(view.now) or 0.0) / max(estimate_s, _SHORTEST_S)
        return (
            f"it waited {wait:.2f} of its estimated run time; cubed and times {job.spec.cpus} CPUs "
            f"that is {wait**3 * job.spec.cpus:.3g}, and jobs of more start before it"
        )


# -- unicep ----------------------------------------------------------------------------------------
# UNICEP: jobs with a long wait for their request, and narrow ones, come first.

_NARROWEST = 2


class Unicep(Ranks, Policy):
    """The greatest wait / (log2(CPUs) x estimate) comes first.

    Tang, Lan, Desai, Buettner: "Fault-aware, utility-based job scheduling on Blue Gene/P systems",
    IEEE Cluster 2009, the utility function UNICEF (spelled UNICEP by those who compare with it).
    It gives small jobs a quick turnaround. The logarithm of one CPU is 0, and would put every
    serial job before every other for good: here a serial job counts as one of two CPUs.

    The estimate is the site's estimate of the run time, at least 1 s. Jobs without an estimate
    come after all others, by age.
    """

    name = "unicep"
    description = "greatest wait / (log2(CPUs) x estimated run time) first (Tang et al. 2009)"
    api_version = 1
    features = ("submit_s", "estimate_s", "cpus")

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Less than 0, the least first; `LAST` without an estimate."""
        asked = np.log2(np.maximum(queue.cpus, _NARROWEST))
        asked *= np.maximum(queue.estimate_s, _SHORTEST_S)
        places: NDArray[np.float64] = (queue.submit_s - view.now) / asked
        places[np.isnan(places)] = LAST
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """The wait in relation to the request."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        asked = float(np.log2(max(job.spec.cpus, _NARROWEST))) * max(estimate_s, _SHORTEST_S)
        worth = (job.wait_s(view.now) or 0.0) / asked
        return (
            f"its wait over its estimated run time and the logarithm of its CPUs is {worth:.3g}; "
            "jobs of more start before it"
        )


# -- f1 --------------------------------------------------------------------------------------------
# F1: a learned formula of run time, CPUs and arrival; the least comes first.

_AGE = 870.0


class F1(Orders, Policy):
    """The least log10(estimate) x CPUs + 870 log10(arrival) comes first.

    Carastan-Santos, de Camargo: "Obtaining dynamic scheduling policies with simulation and machine
    learning", SC 2017, function F1, the best of their four: a regression over many simulated
    queues. Times are in seconds, arrivals since the first job that the policy saw queued (in the
    paper the beginning of the trace), both at least 1 s. As a trace goes on the logarithm
    flattens, and age counts for less and less: after a day, 870 log10 of an hour more is worth
    15 points, what a serial job of any length could not make up.

    The estimate is the site's estimate of the run time. Jobs without one come after all others,
    by age.
    """

    name = "f1"
    description = (
        "least log10(estimate) x CPUs + 870 log10(arrival) first (Carastan-Santos et al. 2017)"
    )
    api_version = 1
    features = ("submit_s", "estimate_s", "cpus")

    _begin_s: float | None = None

    def order(self, job: Job, view: SiteView) -> float:
        """F1 of the paper; the least starts first."""
        submit_s = view.now if job.submit_s is None else job.submit_s
        if self._begin_s is None:
            self._begin_s = submit_s
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return LAST
        length = log10(max(estimate_s, _SHORTEST_S)) * job.spec.cpus
        return length + _AGE * log10(max(submit_s - self._begin_s, _SHORTEST_S))

    def explain(self, job: Job, view: SiteView) -> str:
        """The job's value of F1."""
        if job.spec.estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        return (
            f"log10(estimate) x CPUs + 870 log10(arrival) is {self.order(job, view):.1f}; "
            "jobs of less start before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """The submission of the first job, from which arrivals are counted."""
        return {"begin_s": self._begin_s}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Go on counting from there. Raises `ValueError` for what is no such state."""
        begin_s = saved.get("begin_s")
        if not isinstance(begin_s, float | int | None):
            raise ValueError(f"begin_s {begin_s!r}: expected seconds")
        self._begin_s = begin_s


# -- sdj -------------------------------------------------------------------------------------------
# Short deadline jobs, as EGEE sites ran them: at once in a reserved slot, or refused.

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
