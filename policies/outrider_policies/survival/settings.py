"""Settings of the survival index."""

from typing import Annotated

from msgspec import Meta

from outrider.api import PolicySettings


class SurvivalSettings(PolicySettings, frozen=True):
    """The worth of a completion, and how fast estimates adapt."""

    worth_ratio: Annotated[
        float,
        Meta(
            gt=0,
            description="What a completion may cost when a job begins to wait, in units of the "
            "energy of an uninterrupted job of mean length on the machine of lowest watts. Less "
            "saves more energy and defers more jobs.",
        ),
    ] = 10.0
    patience_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Hours of waiting since the last run after which a completion may cost "
            "twice as much; the limit grows linearly.",
        ),
    ] = 36.0
    lost_run_ratio: Annotated[
        float,
        Meta(
            ge=0,
            description="Price of a good run that is lost, beside its watt-hours, in the unit of "
            "worth_ratio. More prefers machines with rare log-ins over those of low watts.",
        ),
    ] = 3.0
    forgetting_ratio: Annotated[
        float,
        Meta(
            gt=0,
            le=1,
            description="Factor by which counts of job lengths, log-ins and interruptions decay "
            "per week. 1 never forgets.",
        ),
    ] = 0.9
    shrinkage_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Weight of a prior, machine-hours: with less exposure than this, the "
            "hazard of a cluster's hour is mostly that of similar hours and clusters.",
        ),
    ] = 20.0
    regime_h: Annotated[
        float,
        Meta(
            gt=0,
            description="Decay time, in hours, of the ratio of recent to usual log-ins, which "
            "follows terms and vacations.",
        ),
    ] = 72.0
    frailty_shape: Annotated[
        float,
        Meta(
            gt=0,
            description="Shape of the Gamma prior of a machine's frailty: the number of expected "
            "interruptions at which prior and observation weigh the same.",
        ),
    ] = 1.3
    max_defer_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Starvation guard: longest time a job is deferred, seconds.",
        ),
    ] = 604_800.0
