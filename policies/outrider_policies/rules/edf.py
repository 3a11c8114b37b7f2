"""Earliest deadline first: deadlines by class and estimated run time."""

from typing import Annotated, Any

from msgspec import Meta

from outrider.api import Choice, Job, Orders, Policy, PolicySettings, SiteView
from outrider_policies.rules.places import longest_free


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
