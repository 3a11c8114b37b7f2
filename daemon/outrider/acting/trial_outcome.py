"""What a canary trial came to: acting over not acting, with intervals from its pairs of days.

A ratio is that of the sums over all acting days and over all others, which is what a twin states,
too. Its interval is a jackknife over pairs on the logarithm, with Student's t (Efron, Tibshirani:
*An Introduction to the Bootstrap*, ch. 11): without each pair in turn the ratio is worked out
again, and the spread of these says how much hangs on single days. Logarithms of each pair by
itself would weigh a quiet Sunday as much as a full Tuesday. Pure code.
"""

from collections.abc import Callable, Sequence
from math import exp, hypot, log, sqrt
from typing import Annotated, Final, NamedTuple

from msgspec import Meta, Struct

from outrider.acting.trial import Trial, pairs_of
from outrider.acting.trial_tally import DaySums
from outrider.model.student import student_quantile

LEVEL: Final = 0.9
LEAST_PAIRS: Final = 5
"""With fewer, Student's t is so wide, and the jackknife so coarse, that nothing can be said."""


class Measure(NamedTuple):
    """A figure of some days.

    Attributes:
        name: as in `outrider.twin.measures`, where the twin states the same of whole windows.
        of, per: the figure is the sum of one over that of the other.
        label: in words.
    """

    name: str
    of: Callable[[DaySums], float]
    per: Callable[[DaySums], float]
    label: str


MEASURES: Final = (
    Measure("energy_ratio", lambda d: d.energy_j, lambda d: d.goodput_s, "energy per goodput"),
    Measure("badput_ratio", lambda d: d.badput_s, lambda d: d.goodput_s, "badput per goodput"),
    Measure(
        "evictions_ratio", lambda d: d.evictions, lambda d: d.completed,
        "evictions per completed job",
    ),
    Measure(
        "overhead_capped_mean_ratio", lambda d: d.overhead_s, lambda d: d.overheads,
        "mean overhead, each up to a day",
    ),
)  # fmt: skip


class Compared(Struct, frozen=True):
    """One measure, acting over not acting, beside what the twin stated."""

    estimate: Annotated[float | None, Meta(description="Null: too short to say, or not known.")]
    low: float | None
    high: float | None
    acting: Annotated[float | None, Meta(description="The figure of the acting days.")]
    control: float | None
    stated: Annotated[
        dict[str, float] | None, Meta(description="The twin's estimate, low and high.")
    ] = None
    within: Annotated[
        bool | None, Meta(description="Whether the estimate is in the stated interval.")
    ] = None
    agrees: Annotated[
        bool | None,
        Meta(
            description="Whether the two estimates differ by no more than both intervals allow: "
            "their half widths in quadrature, on the logarithm."
        ),
    ] = None


class TrialOutcome(Struct, frozen=True):
    """What a trial came to."""

    pairs: Annotated[int, Meta(description="Pairs of days in which any work was completed.")]
    measures: dict[str, Compared]
    too_short: Annotated[str, Meta(description="Why there is no ratio; empty: there is one.")] = ""


def outcome_of(trial: Trial, days: Sequence[DaySums]) -> TrialOutcome:
    """What a trial came to; pairs of which a day completed nothing are left out.

    Args:
        trial: as registered.
        days: (days,) their sums.
    """
    pairs = [
        (days[a], days[b]) if trial.acts[a] else (days[b], days[a])
        for a, b in pairs_of(trial.days)
        if days[a].completed and days[b].completed
    ]
    found = {measure.name: _compared(measure, pairs, trial) for measure in MEASURES}
    short = "" if len(pairs) >= LEAST_PAIRS else f"too short to say: {len(pairs)} pairs of days"
    return TrialOutcome(len(pairs), found, short)


def _compared(measure: Measure, pairs: Sequence[tuple[DaySums, DaySums]], trial: Trial) -> Compared:
    acting = _figure(measure, [pair[0] for pair in pairs])
    control = _figure(measure, [pair[1] for pair in pairs])
    stated = trial.stated.get(measure.name)
    interval = None if len(pairs) < LEAST_PAIRS else _interval(measure, pairs)
    if interval is None:
        return Compared(None, None, None, acting, control, stated)
    estimate, low, high = interval
    if stated is None:
        return Compared(estimate, low, high, acting, control)
    within = stated["low"] <= estimate <= stated["high"]
    agrees = _agree((estimate, low, high), (stated["estimate"], stated["low"], stated["high"]))
    return Compared(estimate, low, high, acting, control, stated, within, agrees)


def _agree(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Whether two independent estimates differ by no more than their intervals allow.

    Args:
        a: estimate, low and high of the one.
        b: those of the other.
    """
    less, more = sorted((a, b))
    half = hypot(log(less[2] / less[0]), log(more[0] / more[1]))
    return log(more[0] / less[0]) <= half


def _interval(
    measure: Measure, pairs: Sequence[tuple[DaySums, DaySums]]
) -> tuple[float, float, float] | None:
    """Estimate, low and high; None where a figure is 0 or not known."""
    whole = _log_ratio(measure, pairs)
    n = len(pairs)
    without = [_log_ratio(measure, [*pairs[:k], *pairs[k + 1 :]]) for k in range(n)]
    known = [value for value in without if value is not None]
    if whole is None or len(known) < n:
        return None
    centre = sum(known) / n
    error = sqrt((n - 1) / n * sum((value - centre) ** 2 for value in known))
    half = student_quantile((1.0 + LEVEL) / 2.0, n - 1) * error
    return exp(whole), exp(whole - half), exp(whole + half)


def _log_ratio(measure: Measure, pairs: Sequence[tuple[DaySums, DaySums]]) -> float | None:
    acting = _figure(measure, [pair[0] for pair in pairs])
    control = _figure(measure, [pair[1] for pair in pairs])
    if not (acting and control):
        return None
    return log(acting / control)


def _figure(measure: Measure, days: Sequence[DaySums]) -> float | None:
    """The figure of some days together; None where it is not known."""
    per = sum(measure.per(day) for day in days)
    value = sum(measure.of(day) for day in days) / per if per else None
    return value if value == value else None  # nan: watts are unknown
