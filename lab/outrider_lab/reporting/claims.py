"""Claims of papers, and the verdict that a measured interval gives.

A claim says in which region a statistic must lie. The statistic is measured once a seed (a
year); the verdict is computed from its 95 % interval over the seeds, and from nothing else: see
`outrider_lab.reporting.verdicts`.
"""

from collections.abc import Sequence
from math import isfinite, sqrt
from statistics import fmean, stdev
from typing import Any, Final

import msgspec

from outrider_lab.reporting.verdicts import NOT_COMPARABLE, Verdict, verdict_of

_T_975: Final = (
    12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160,
    2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056,
    2.052, 2.048, 2.045, 2.042,
)  # fmt: skip
"""Student's t, 97.5 %, for 1 to 30 degrees of freedom; beyond, the last is a little too wide."""


class Claim(msgspec.Struct, frozen=True):
    """What a paper says, as something that can be measured.

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
    """Of the mean; None for fewer than two values."""
    return stdev(values) / sqrt(len(values)) if len(values) > 1 else None


def interval_of(values: Sequence[float]) -> tuple[float, float] | None:
    """The 95 % interval of the mean (Student's t); None for fewer than two values."""
    error = standard_error(values)
    if error is None:
        return None
    mean, reach = fmean(values), error * _T_975[min(len(values) - 1, len(_T_975)) - 1]
    return mean - reach, mean + reach


def judge(claim: Claim, values: Sequence[float], too_small: str | None = None) -> dict[str, Any]:
    """The claim as the output has it.

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
    """The verdict and why."""
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
    """Where a statistic must lie, in words."""
    if low is None:
        return "anywhere" if high is None else f"below {high:.3g}"
    return f"above {low:.3g}" if high is None else f"between {low:.3g} and {high:.3g}"
