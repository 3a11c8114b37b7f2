"""Which epsilon stands for a level: figures 12 to 17 compare the levels at three of them."""

from collections.abc import Callable, Mapping
from typing import Any, Final

from outrider_lab.papers.mcgough.grid import LEVELS, Size, at_level
from outrider_lab.running.run_spec import PolicySpec

LOWEST_OVERHEAD: Final = "lowest overhead"
LOWEST_ENERGY: Final = "lowest energy"
RANDOMS_OVERHEAD: Final = "random's overhead"

CRITERIA: Final[Mapping[str, Callable[[Mapping[str, Any]], float]]] = {
    LOWEST_OVERHEAD: lambda row: float(row["overhead_ratio"]),
    LOWEST_ENERGY: lambda row: float(row["total_mwh"]),
    RANDOMS_OVERHEAD: lambda row: abs(row["overhead_ratio"] - 1.0),
}
"""What is least, by the paper's three cases (7.2): LO, LE and RC of its figures 12 and 13."""

Choices = Mapping[str, Mapping[str, PolicySpec]]
"""The policy chosen for a case and a level."""


def choose(size: Size, rows: Mapping[PolicySpec, Mapping[str, Any]]) -> Choices:
    """Choose on the means over all years, as the paper chose on its one year.

    Args:
        size: its epsilons are chosen from, at sigma .8.
        rows: by policy; a level of which none is there has no choice.
    """
    out: dict[str, dict[str, PolicySpec]] = {case: {} for case in CRITERIA}
    for level in LEVELS:
        there = [policy for policy in at_level(size, level) if policy in rows]
        for case, least in CRITERIA.items():
            if there:
                out[case][level] = min(there, key=lambda v, least=least: least(rows[v]))  # type: ignore[misc]
    return out
