"""Claims of papers, and the verdict that a measured interval gives.

A claim says in which region a statistic must lie. The statistic is measured once a seed (a
year); the verdict is computed from its 95 % interval over the seeds, and from nothing else: see
`outrider_lab.reporting.claims`.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum
from math import inf, isfinite, nan, sqrt
from statistics import fmean, stdev
from typing import Any, Final, Generic, NamedTuple, TypeVar

import msgspec

# -- verdicts --------------------------------------------------------------------------------------
# The verdict on a claim: four of them, from an interval, a region and how much was measured.
#
# Every page, table and JSON document has its verdicts from here: those on papers' claims, and those
# on differences between policies, where the claim is that one is better than the other.

NOT_COMPARABLE: Final = "not comparable"
"""Replaces a verdict: nothing here can confirm or refute the claim, which is not tried."""
FEWEST_SEEDS: Final = 2
"""Independent seeds (years): Student's interval is right from two on, only wide."""
FEWEST_BLOCKS: Final = 10
"""Blocks of time, which are independent only nearly."""


class Verdict(StrEnum):
    """Verdict of an interval on a claim."""

    REPRODUCED = "reproduced"
    OUTSIDE = "outside"
    UNDECIDED = "undecided"
    TOO_SMALL = "too small"

    @property
    def sentence(self) -> str:
        """Meaning of the verdict, for a reader."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Verdict.REPRODUCED: "The whole interval lies where the claim holds: it is met or exceeded.",
    Verdict.OUTSIDE: "The whole interval lies where the claim does not hold.",
    Verdict.UNDECIDED: "The interval lies only partly where the claim holds: use more seeds.",
    Verdict.TOO_SMALL: "Too little was measured to judge the claim.",
}


def verdict_of(
    interval: tuple[float, float] | None,
    region: tuple[float | None, float | None],
    measured_n: int,
    fewest: int = FEWEST_SEEDS,
) -> Verdict:
    """Return the verdict of an interval on a claim.

    Args:
        interval: low and high end of where the figure lies; None: there is none.
        region: where the claim holds, without its ends (equal is not less); None: no such end,
            as in a claim of a gain, which a greater gain exceeds.
        measured_n: how many independent seeds, or blocks of time, the interval is from.
        fewest: with fewer there is no verdict.
    """
    if interval is None or measured_n < fewest:
        return Verdict.TOO_SMALL
    low, high = interval
    least = -inf if region[0] is None else region[0]
    most = inf if region[1] is None else region[1]
    if least < low and high < most:
        return Verdict.REPRODUCED
    if high <= least or most <= low:
        return Verdict.OUTSIDE
    return Verdict.UNDECIDED


def counted(claims: Iterable[Mapping[str, Any]]) -> dict[str, int]:
    """Return numbers of claims: tried, by verdict, and not comparable.

    Args:
        claims: as `outrider_lab.reporting.claims.judge` returns them.
    """
    found = Counter(one["verdict"] for one in claims)
    by_verdict = {str(verdict): found[verdict] for verdict in Verdict}
    return {
        "tried": sum(by_verdict.values()),
        **by_verdict,
        NOT_COMPARABLE: found[NOT_COMPARABLE],
    }


def in_words(counts: Mapping[str, int]) -> str:
    """Return the result of `counted` as a sentence without its full stop."""
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    return f"{counts['tried']} claims tried: {parts}; {counts[NOT_COMPARABLE]} {NOT_COMPARABLE}"


def rule() -> str:
    """Return how a verdict is reached, in a paragraph for readers."""
    return "; ".join(
        f"{verdict}: {verdict.sentence[0].lower()}{verdict.sentence[1:-1]}" for verdict in Verdict
    ) + (
        ". Not comparable is no verdict: nothing here could confirm or refute such a claim. An "
        "interval of 95 % misses the truth once in twenty times, so some of many claims get a "
        "verdict at random."
    )


# -- claims ----------------------------------------------------------------------------------------

_T_975: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, 97.5 %, for 1 to 30 degrees of freedom; beyond, the last is slightly too wide."""


class Claim(msgspec.Struct, frozen=True):
    """Claim of a paper in a form that can be measured.

    Attributes:
        claim: in words.
        where: section and figure.
        paper: the figure the paper prints, as text.
        statistic: what is measured for it, in words.
        low, high: the region in which the claim holds, without its ends: equal is not less;
            None: it has no such end.
        incomparable: why no figure of ours can confirm or refute it; None: it can.
    """

    claim: str
    where: str
    paper: str
    statistic: str
    low: float | None = None
    high: float | None = None
    incomparable: str | None = None


def standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean; None for fewer than two values."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else None


def interval_of(values: Sequence[float]) -> tuple[float, float] | None:
    """Return the 95 % interval of the mean (Student's t); None for fewer than two values."""
    error = standard_error(values)
    if error is None:
        return None
    mean, reach = fmean(values), error * _T_975[min(len(values) - 1, len(_T_975)) - 1]
    return mean - reach, mean + reach


def judge(claim: Claim, values: Sequence[float], too_small: str | None = None) -> dict[str, Any]:
    """Return the claim as the output has it.

    Args:
        claim: what is claimed.
        values: the statistic, once a seed; what is not finite could not be measured.
        too_small: why runs of this size decide nothing; None: they are large enough.

    Returns:
        claim, where, paper, statistic, expected (low and high; None where incomparable),
        measured (mean), interval, verdict, why.
    """
    known = [value for value in values if isfinite(value)]
    interval = interval_of(known)
    verdict, why = _verdict(claim, interval, len(known), too_small)
    return {
        "claim": claim.claim,
        "where": claim.where,
        "paper": claim.paper,
        "statistic": claim.statistic,
        "expected": None if claim.incomparable else [claim.low, claim.high],
        "measured": fmean(known) if known else None,
        "interval": interval,
        "verdict": verdict,
        "why": why,
    }


def _verdict(
    claim: Claim, interval: tuple[float, float] | None, seeds: int, too_small: str | None
) -> tuple[str, str]:
    """Return the verdict and why."""
    if claim.incomparable:
        return NOT_COMPARABLE, claim.incomparable
    if too_small:
        return Verdict.TOO_SMALL, too_small
    if not seeds:
        why = "nothing was measured for it: its runs are not in the grid, or failed"
        return Verdict.TOO_SMALL, why
    if interval is None:
        return Verdict.TOO_SMALL, "one seed gives no interval"
    verdict = verdict_of(interval, (claim.low, claim.high), seeds)
    found = f"{interval[0]:.3g} to {interval[1]:.3g} over {seeds} seeds"
    return verdict, f"{found} {_LIES[verdict]} {region(claim.low, claim.high)}"


_LIES: Final = {
    Verdict.REPRODUCED: "lies",
    Verdict.OUTSIDE: "does not lie",
    Verdict.UNDECIDED: "lies only partly",
}


def region(low: float | None, high: float | None) -> str:
    """Return where a statistic must lie, in words."""
    if low is None:
        return "anywhere" if high is None else f"below {high:.3g}"
    return f"above {low:.3g}" if high is None else f"between {low:.3g} and {high:.3g}"


# -- judging ---------------------------------------------------------------------------------------
# What a paper states, measured unit by unit and judged; a unit is a seed, a year or a window.
#
# A statistic is put together from figures of the runs of one unit, so that what is compared met the
# same arrivals.

Unit = TypeVar("Unit")
Statistic = Callable[[Unit], float]
"""Statistic of one unit: nan if unknown; raises `KeyError` if the unit lacks a run it needs."""


class Stated(NamedTuple, Generic[Unit]):
    """A claim, what is measured for it in each unit, and what is known beyond the figures."""

    claim: Claim
    statistic: Statistic[Unit]
    note: str = ""


def judged(
    stated: Iterable[Stated[Unit]], units: Iterable[Unit], too_small: str | None
) -> list[dict[str, Any]]:
    """Return every claim with what was measured and the verdict.

    Args:
        stated: claims and their statistics.
        units: a unit that lacks a claim's run does not count for that claim.
        too_small: why runs of this size decide nothing; None: they are large enough.
    """
    units = list(units)
    out = []
    for claim, statistic, note in stated:
        found = judge(claim, [_measured(statistic, unit) for unit in units], too_small)
        if note:
            found["why"] += f"; {note}"
        out.append(found)
    return out


def _measured(statistic: Statistic[Unit], unit: Unit) -> float:
    try:
        return statistic(unit)
    except KeyError:  # that run is not in this size's grid, or it failed and is listed as failed
        return nan


def unmeasured(unit: object) -> float:
    """Return nan, for a claim that no figure can confirm or refute."""
    return nan


def ratio(above: Statistic[Unit], below: Statistic[Unit]) -> Statistic[Unit]:
    """Return the ratio of two statistics of one unit; nan over nothing."""

    def statistic(unit: Unit) -> float:
        whole = below(unit)
        return above(unit) / whole if whole else nan

    return statistic


def less(first: Statistic[Unit], second: Statistic[Unit]) -> Statistic[Unit]:
    """Return the difference of two statistics."""
    return lambda unit: first(unit) - second(unit)


def times(statistic: Statistic[Unit], factor: float) -> Statistic[Unit]:
    """Return a statistic in another unit of measurement."""
    return lambda unit: factor * statistic(unit)


def greatest(statistics: Iterable[Statistic[Unit]]) -> Statistic[Unit]:
    """Return the greatest of several statistics; nan if there is none."""
    several = list(statistics)
    return lambda unit: max((statistic(unit) for statistic in several), default=nan)


def least(statistics: Iterable[Statistic[Unit]]) -> Statistic[Unit]:
    """Return the least of several statistics; nan if there is none."""
    several = list(statistics)
    return lambda unit: min((statistic(unit) for statistic in several), default=nan)
