"""The verdict on a claim: four of them, from an interval, a region and how much was measured.

Every page, table and JSON document has its verdicts from here: those on papers' claims, and those
on differences between policies, where the claim is that one is better than the other.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum
from math import inf
from typing import Any, Final

NOT_COMPARABLE: Final = "not comparable"
"""In the place of a verdict: nothing of ours can confirm or refute the claim; it is not tried."""

FEWEST_SEEDS: Final = 2
"""Independent seeds (years): Student's interval is right from two on, only wide."""
FEWEST_BLOCKS: Final = 10
"""Blocks of time, which are independent only nearly."""


class Verdict(StrEnum):
    """What an interval says of a claim."""

    REPRODUCED = "reproduced"
    OUTSIDE = "outside"
    UNDECIDED = "undecided"
    TOO_SMALL = "too small"

    @property
    def sentence(self) -> str:
        """What it means, for a reader."""
        return _SENTENCES[self]


_SENTENCES: Final = {
    Verdict.REPRODUCED: "The whole interval lies where the claim holds: it is met or exceeded.",
    Verdict.OUTSIDE: "The whole interval lies where the claim does not hold.",
    Verdict.UNDECIDED: "The interval lies only partly where the claim holds: more seeds may tell.",
    Verdict.TOO_SMALL: "Too little was measured to judge the claim.",
}


def verdict_of(
    interval: tuple[float, float] | None,
    region: tuple[float | None, float | None],
    measured_n: int,
    fewest: int = FEWEST_SEEDS,
) -> Verdict:
    """The verdict.

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
    """How many claims were tried, how many got each verdict, and how many are not comparable.

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
    """What `counted` returned, as a sentence without its full stop."""
    parts = ", ".join(f"{counts[verdict]} {verdict}" for verdict in Verdict)
    return f"{counts['tried']} claims tried: {parts}; {counts[NOT_COMPARABLE]} {NOT_COMPARABLE}"


def rule() -> str:
    """How a verdict comes about, in a paragraph for readers."""
    return "; ".join(
        f"{verdict}: {verdict.sentence[0].lower()}{verdict.sentence[1:-1]}" for verdict in Verdict
    ) + (
        ". Not comparable is no verdict: nothing here could confirm or refute such a claim. An "
        "interval of 95 % misses the truth once in twenty times, so some of many claims get a "
        "verdict by chance."
    )
