"""The shape of what a policy predicted, and deferred, beside what happened.

It follows the rules of `outrider.service.web.shapes.values`.
"""

from typing import Annotated

from msgspec import Meta, Struct

from outrider.service.web.shapes.values import Count, Counts, Unknown


class Bin(Struct):
    """Runs with predictions in one range: means of what was predicted and observed."""

    bin: str
    n: float
    predicted: Unknown
    observed: Unknown


class EvictionScore(Struct):
    """Predicted probabilities of eviction against the rate that was observed.

    The reference is the Brier score of always saying the observed rate; skill is relative to it.
    """

    n: Annotated[float, Meta(description="Runs; of recent ones, the sum of their weights.")]
    predicted: Unknown
    observed: Unknown
    brier: Unknown
    reference: Unknown
    skill: Unknown
    bins: list[Bin]


class RunScore(Struct):
    """Predicted seconds of work against the actual ones, of runs that completed."""

    n: float
    predicted: Unknown
    observed: Unknown
    mean_absolute_error: Unknown
    bins: list[Bin]


class EvictionScores(Struct):
    """Of all runs since the beginning, and of recent ones."""

    all: EvictionScore
    recent: EvictionScore


class RunScores(Struct):
    """Of all runs since the beginning, and of recent ones."""

    all: RunScore
    recent: RunScore


class Calibration(Struct):
    """How true a policy's predictions of runs were."""

    half_life_s: Annotated[float, Meta(description="After so long a recent run counts half.")]
    open: Annotated[Count, Meta(description="Predicted runs that are going on.")]
    neither: Annotated[
        Count, Meta(description="Predicted runs that somebody ended; they are not scored.")
    ]
    evictions: EvictionScores
    run_s: RunScores


class DeferredJobs(Struct):
    """Jobs that the policy deferred, or in shadow would have, by how they ended later."""

    jobs: Counts
    defer_s: dict[str, float]
