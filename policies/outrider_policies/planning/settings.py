"""Settings that the policies after Vengerov share."""

from typing import Annotated

from msgspec import Meta

from outrider.api import PolicySettings


class LengthSettings(PolicySettings, frozen=True):
    """Lengths of jobs without estimate."""

    assumed_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Length of a job without estimate, seconds, until one of them completed; "
            "after that, the mean of those that did.",
        ),
    ] = 3600.0


class PlanningSettings(LengthSettings, frozen=True):
    """Ways to start jobs that do not fit."""

    preempt: Annotated[
        bool,
        Meta(description="Suspend runs of less remaining utility to start a queued job."),
    ] = True
    oversubscribe: Annotated[
        bool,
        Meta(description="Start a queued job on fewer CPUs than it requests (shrink it)."),
    ] = True
