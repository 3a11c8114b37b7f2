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
    """Rule that starts the queued job of the shortest estimated run time first.

    It goes to the longest-free machine. Jobs without an estimate come after all others, in order
    of submission. Long jobs may starve while short ones keep coming: that is the price of the
    lowest mean wait.
    """

    name = "sjf"
    description = "shortest estimated run time first, on the machine that has been free the longest"
    api_version = 1
    features = ("estimate_s",)

    def order(self, job: Job, view: SiteView) -> float:
        """Return the estimated run time, seconds."""
        return LAST if job.spec.estimate_s is None else job.spec.estimate_s

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the longest-free machine with enough CPUs; never defer a job."""
        return longest_free(job, view, "shortest")

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe which jobs start before it."""
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
    """Rule that starts the queued job of the earliest deadline, on the longest-free machine.

    Deadline = submission (or when it became eligible) + time of its class + stretch x estimate.
    Deadlines are fixed, so a queued job moves to the front: none starves. A job whose submission
    time is unknown counts as the oldest.
    """

    name = "edf"
    description = "earliest deadline first: submission + time of the class + stretch x estimate"
    api_version = 1
    features = ("submit_s", "job_class", "estimate_s")

    def order(self, job: Job, view: SiteView) -> float:
        """Return the deadline, seconds of event time."""
        if job.submit_s is None:
            return float("-inf")
        settings: EdfSettings = self.settings
        spec = job.spec
        promise_s = settings.interactive_s if spec.job_class == "interactive" else settings.batch_s
        eligible_s = max(job.submit_s, spec.eligible_s or job.submit_s)
        return eligible_s + promise_s + settings.stretch_ratio * (spec.estimate_s or 0.0)

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Choose the longest-free machine with enough CPUs; never defer a job."""
        return longest_free(job, view, "deadline")

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the time until its deadline."""
        left_s = self.order(job, view) - view.now
        if left_s == float("-inf"):
            return "its submission time is unknown: it counts as the oldest and starts first"
        when = f"in {left_s / 60:.0f} min" if left_s >= 0 else f"{-left_s / 60:.0f} min ago"
        return f"its deadline is {when}; jobs with an earlier one start before it"


# -- wfp3 ------------------------------------------------------------------------------------------
# WFP3: jobs with a long wait for their estimate, and wide ones, come first.

_SHORTEST_S = 1.0


class Wfp3(Ranks, Policy):
    """Rule that starts the job of the greatest (wait / estimate)^3 x CPUs first.

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
        """Return positions below 0, the lowest first; `LAST` without an estimate."""
        waits = (view.now - queue.submit_s) / np.maximum(queue.estimate_s, _SHORTEST_S)
        places: NDArray[np.float64] = -(waits**3) * queue.cpus
        places[np.isnan(places)] = LAST
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the wait in relation to the estimate, and the resulting priority."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        wait = (job.wait_s(view.now) or 0.0) / max(estimate_s, _SHORTEST_S)
        return (
            f"it has waited {wait:.2f} times its estimated run time; its priority is that cubed, "
            f"times {job.spec.cpus} CPUs: {wait**3 * job.spec.cpus:.3g}; jobs of higher priority "
            "start before it"
        )


# -- unicep ----------------------------------------------------------------------------------------
# UNICEP: jobs with a long wait for their request, and narrow ones, come first.

_NARROWEST = 2


class Unicep(Ranks, Policy):
    """Rule that starts the job of the greatest wait / (log2(CPUs) x estimate) first.

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
        """Return positions below 0, the lowest first; `LAST` without an estimate."""
        weight = np.log2(np.maximum(queue.cpus, _NARROWEST))
        weight *= np.maximum(queue.estimate_s, _SHORTEST_S)
        places: NDArray[np.float64] = (queue.submit_s - view.now) / weight
        places[np.isnan(places)] = LAST
        return places

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the wait in relation to the request."""
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        weight = float(np.log2(max(job.spec.cpus, _NARROWEST))) * max(estimate_s, _SHORTEST_S)
        priority = (job.wait_s(view.now) or 0.0) / weight
        return (
            f"its priority, wait / (log2(CPUs) x estimated run time), is {priority:.3g}; "
            "jobs of higher priority start before it"
        )


# -- f1 --------------------------------------------------------------------------------------------
# F1: a learned formula of run time, CPUs and arrival; the least comes first.

_AGE = 870.0


class F1(Orders, Policy):
    """Rule that starts the job of the least log10(estimate) x CPUs + 870 log10(arrival) first.

    Carastan-Santos, de Camargo: "Obtaining dynamic scheduling policies with simulation and machine
    learning", SC 2017, function F1, the best of their four: a regression over many simulated
    queues. Times are in seconds, arrivals since the first job that the policy saw queued (in the
    paper the beginning of the trace), both at least 1 s. As a trace continues the logarithm
    flattens, and age counts for less and less: after a day, 870 log10 of an hour more adds
    15 points, which a serial job of any length could not make up.

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
        """Return F1 of the paper; the least starts first."""
        submit_s = view.now if job.submit_s is None else job.submit_s
        if self._begin_s is None:
            self._begin_s = submit_s
        estimate_s = job.spec.estimate_s
        if estimate_s is None:
            return LAST
        length = log10(max(estimate_s, _SHORTEST_S)) * job.spec.cpus
        return length + _AGE * log10(max(submit_s - self._begin_s, _SHORTEST_S))

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe the job's value of F1."""
        if job.spec.estimate_s is None:
            return "it has no estimated run time: it starts after all jobs that have one"
        return (
            f"log10(estimate) x CPUs + 870 log10(arrival) is {self.order(job, view):.1f}; "
            "jobs of lower value start before it"
        )

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the submission of the first job, from which arrivals are counted."""
        return {"begin_s": self._begin_s}

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned. Raises `ValueError` for another kind of state."""
        begin_s = saved.get("begin_s")
        if not isinstance(begin_s, float | int | None):
            raise ValueError(f"begin_s {begin_s!r}: expected seconds")
        self._begin_s = begin_s


# -- sdj -------------------------------------------------------------------------------------------
# Short deadline jobs, as EGEE sites ran them: immediately in a reserved slot, or refused.

_AT_ONCE: Final = "at_once"
_REFUSED: Final = "refused"


class SdjSettings(PolicySettings, frozen=True):
    """Settings of the share of the site that is reserved for interactive jobs."""

    reserved_ratio: Annotated[
        float,
        Meta(
            ge=0,
            le=1,
            description="Share of the CPUs that batch jobs never get. More refuses fewer "
            "interactive jobs, and leaves more CPUs idle.",
        ),
    ] = 0.1


class ShortDeadlineJobs(Ranks, Policy[SdjSettings]):
    """Rule that starts an interactive job when it is submitted, or refuses it.

    It starts in a reserved slot or any other. Section II.B of Perez et al. 2008: "the job will
    either immediately start executing or be rejected if no resource is available". A refused job is
    treated as if resubmitted as a batch job: it goes to the end of the queue, and its start has the
    reason ``refused``. Batch jobs start in order of submission, on CPUs that are not reserved.
    Slots are only counted: interactive runs take reserved ones first.
    """

    name = "sdj"
    description = (
        "interactive jobs start immediately in a reserved slot or are refused; batch is FIFO"
    )
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
        """Note that the job is new: only at this moment may it start without queuing."""
        self._at_moment(view.now)
        self._new.add(job.number)

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        """Return positions: interactive jobs of this moment, then all others if CPUs are left.

        If none are left, the first of the others waits, and no job passes it.
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
        """Return the free CPUs, less reserved ones that no interactive run uses."""
        settings: SdjSettings = self.settings
        cpus_n = view.open_cpus
        filled = sum(
            run.cpus for run in self._runs.jobs(view) if run.spec.job_class == "interactive"
        )
        reserved = int(settings.reserved_ratio * cpus_n)
        return sum(map(view.cpus_left, view.free_since)) - max(0, reserved - filled)

    def choose(self, job: Job, evaluation: object, view: SiteView, may_defer: bool) -> Choice:
        """Choose the tightest machine that suffices."""
        choice = super().choose(job, evaluation, view, may_defer)
        if choice.machine != NOWHERE and job.spec.job_class == "interactive":
            self._at_moment(view.now)
            self._runs.start(job, view)
            choice.reason = _AT_ONCE if job.number in self._new else _REFUSED
        return choice
