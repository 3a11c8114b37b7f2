"""Settings that the policies after Vengerov share."""

from typing import Annotated

from msgspec import Meta

from outrider.api import PolicySettings


class LengthSettings(PolicySettings, frozen=True):
    """What a job without estimate is taken for."""

    assumed_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Length of a job without estimate, seconds, until one of them completed; "
            "after that, the mean of those that did.",
        ),
    ] = 3600.0


class PlanningSettings(LengthSettings, frozen=True):
    """What may be done for jobs that do not fit."""

    preempt: Annotated[
        bool,
        Meta(description="Suspend runs of less remaining utility to force a waiting job in."),
    ] = True
    oversubscribe: Annotated[
        bool,
        Meta(description="Shrink a waiting job onto fewer CPUs than it asks for."),
    ] = True
