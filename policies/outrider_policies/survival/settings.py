"""Settings of the survival index."""

from typing import Annotated

from msgspec import Meta

from outrider.api import PolicySettings


class SurvivalSettings(PolicySettings, frozen=True):
    """What a completion is worth, and how fast habits are learned and forgotten."""

    worth_ratio: Annotated[
        float,
        Meta(
            gt=0,
            description="What a completion may cost when a job begins to wait, in units of what a "
            "good job of mean length costs on the thriftiest machine without an interruption. "
            "Less saves more energy and keeps more jobs queued.",
        ),
    ] = 10.0
    patience_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Hours of waiting since the last run by which a completion may cost twice "
            "as much; it grows on at that rate.",
        ),
    ] = 36.0
    lost_run_ratio: Annotated[
        float,
        Meta(
            ge=0,
            description="Price of a good run that is thrown away, beside its watt-hours, in the "
            "unit of worth_ratio. More prefers machines that are left alone over thrifty ones.",
        ),
    ] = 3.0
    forgetting_ratio: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Worth of what was seen last week against this week: of job lengths, "
            "log-ins and interruptions. 1 never forgets.",
        ),
    ] = 0.9
    shrinkage_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Machine-hours that a prior weighs: with less exposure than this, the "
            "hazard of a cluster's hour is mostly that of akin hours and clusters.",
        ),
    ] = 20.0
    regime_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Mean memory, in hours, for how busy the last days were against what is "
            "usual: it follows terms and vacations.",
        ),
    ] = 72.0
    frailty_shape: Annotated[
        float,
        Meta(
            gt=0,
            description="Shape of the Gamma prior of a machine's frailty: the interruptions that "
            "it takes to believe half of what a machine shows beside its cluster.",
        ),
    ] = 1.3
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job stays queued by choice, seconds.",
        ),
    ] = 604_800.0
