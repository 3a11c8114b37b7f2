"""Base of the planning policies after Vengerov: when to plan, and run time estimates."""

from abc import abstractmethod
from collections.abc import Hashable, Iterable, Sequence
from typing import Annotated, Any, TypeVar

from msgspec import Meta

from outrider.api import (
    COMPLETED_RUN,
    RUNNING,
    SUSPENDED_STATE,
    Job,
    Learns,
    Listens,
    Move,
    Outcome,
    Plans,
    Policy,
    PolicySettings,
    Queue,
    SiteView,
)
from outrider_policies.planning.queued_jobs import JobRequest, RunLengths, request_of, work_left_s

# -- settings --------------------------------------------------------------------------------------
# Settings that the policies after Vengerov share.


class LengthSettings(PolicySettings, frozen=True):
    """Settings for the lengths of jobs without estimate."""

    assumed_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Length of a job without estimate, seconds, until one of them completed; "
            "after that, the mean of those that did.",
        ),
    ] = 3600.0


class PlanningSettings(LengthSettings, frozen=True):
    """Settings that allow ways to start jobs that do not fit."""

    preempt: Annotated[
        bool,
        Meta(description="Suspend runs of less remaining utility to start a queued job."),
    ] = True
    oversubscribe: Annotated[
        bool,
        Meta(description="Start a queued job on fewer CPUs than it requests (shrink it)."),
    ] = True


# -- planner ---------------------------------------------------------------------------------------

LengthSettingsT = TypeVar("LengthSettingsT", bound=LengthSettings)


class RoundPlanner(Plans, Learns, Listens, Policy[LengthSettingsT]):
    """Base of policies that plan once whenever jobs come or end or machines change.

    They do not plan again for their own moves.
    """

    features = ("submit_s", "estimate_s", "cpus", "job_class")

    def __init__(self, settings: LengthSettingsT, rng: Any) -> None:
        super().__init__(settings, rng)
        self.lengths = RunLengths(settings.assumed_s, None)
        self._plan_is_due = True
        self._planned_s: float | None = None

    @abstractmethod
    def rearrange(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Return the moves of a scheduling pass."""

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Return the moves of a pass; none if only the policy's own moves happened since."""
        if view.now == self._planned_s and not self._plan_is_due:
            return ()
        self._planned_s, self._plan_is_due = view.now, False
        return self.rearrange(queue, view)

    def on_enqueue(self, job: Job, view: SiteView) -> None:
        """Plan again if a job was submitted, but not for one that this policy preempted."""
        if job.state != SUSPENDED_STATE:
            self._plan_is_due = True

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        """Plan again after every event of a machine."""
        self._plan_is_due = True

    def group_key(self, job: Job, view: SiteView) -> Hashable:
        """Return the request from which the job's utility is computed."""
        return request_of(job)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """Plan again; learn the length of jobs without an estimate. Return no rewards."""
        self._plan_is_due = True
        if outcome.ending == COMPLETED_RUN and JobRequest(*outcome.key).estimate_s is None:  # type: ignore[misc]
            self.lengths.completed(outcome.run_s)
        return ()

    def explain(self, job: Job, view: SiteView) -> str:
        """Describe what a queued job waits for, or the utility that a run is expected to earn."""
        if job.state == RUNNING:
            return what_its_run_brings(job, view, self.lengths)
        return what_it_waits_for(job, view)

    def save(self, view: SiteView) -> dict[str, Any]:
        """Return the lengths of jobs without an estimate, and whether the present was planned."""
        return {
            "lengths": self.lengths.save(),
            "has_news": self._plan_is_due,
            "planned_s": self._planned_s,
        }

    def restore(self, saved: dict[str, Any], view: SiteView) -> None:
        """Restore what `save` returned."""
        self.lengths.restore(saved["lengths"])
        self._plan_is_due = bool(saved["has_news"])
        self._planned_s = saved["planned_s"]


# -- explanations ----------------------------------------------------------------------------------
# Explanations of the resources a job waits for and the utility its run is expected to earn.


def what_it_waits_for(job: Job, view: SiteView) -> str:
    """Describe the CPUs a job needs on one machine, and the maximum free on one."""
    wait = "it was preempted and waits" if job.state == SUSPENDED_STATE else "it waits"
    max_free = max((view.cpus_left(machine) for machine in range(view.machines_n)), default=0)
    return f"{wait} for {job.spec.cpus} CPUs on one machine; at most {max_free} are free on any"


def what_its_run_brings(job: Job, view: SiteView, lengths: RunLengths) -> str:
    """Describe when a job's run is expected to end, and with what utility."""
    ideal_s = lengths.ideal_s(job)
    rate = view.speed_of(job.machine) * job.cpus / job.spec.cpus
    remaining_s = work_left_s(job, ideal_s, view.now) / rate
    submit_s = job.start_s if job.submit_s is None else job.submit_s
    unit = float(view.utility(job).unit(view.now + remaining_s - submit_s, ideal_s))
    return (
        f"it runs on {job.cpus} of {job.spec.cpus} CPUs and is expected to end in "
        f"{remaining_s:.0f} s with {unit:.0%} of its full utility"
    )
