"""Every claim of the paper's section 7, judged.

Its absolute figures cannot be compared: the year is generated. Everything else is a ratio or a
difference within one year.
"""

from collections.abc import Mapping
from math import inf
from typing import Any, Final

from outrider_lab.papers.mcgough.choices import Choices
from outrider_lab.papers.mcgough.claimed_of_epsilon import claims_of_epsilon
from outrider_lab.papers.mcgough.claimed_of_levels import claims_of_levels
from outrider_lab.papers.mcgough.claimed_of_options import claims_of_options
from outrider_lab.papers.mcgough.grid import Size
from outrider_lab.papers.mcgough.rows import Year
from outrider_lab.reporting import judging

LEAST_WEEKS: Final = 26
"""Shorter runs decide nothing: the bandit has hardly begun to learn."""


def judged(size: Size, choices: Choices, years: Mapping[int, Year]) -> list[dict[str, Any]]:
    """Every claim with what was measured and the verdict.

    Args:
        size: of the reproduction; one too small decides nothing.
        choices: which epsilon stands for a level.
        years: figures by seed. A year that lacks a claim's run does not count for that claim.
    """
    weeks = dict(size.campus).get("weeks", inf)
    too_small = None
    if weeks < LEAST_WEEKS:
        too_small = f"{weeks:g} weeks of a small pool are too short to learn; {LEAST_WEEKS} decide"
    stated = [*claims_of_epsilon(size), *claims_of_levels(choices), *claims_of_options(size)]
    return judging.judged(stated, years.values(), too_small)
