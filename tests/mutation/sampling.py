"""Sampling of mutants, their known results, and the confidence of a sample's share."""

import math
import random
import tomllib
from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import Final, NamedTuple

from tests.mutation.mutants import Mutant

EQUIVALENT: Final = Path(__file__).with_name("equivalent.toml")
_Z: Final = 1.959964
"""Quantile of the normal distribution for 95 %."""


class Equivalent(NamedTuple):
    """Mutants that change nothing that anybody could see.

    Attributes:
        file: from the root.
        line: its text, without the spaces around it.
        operators: names of operators, or a part of them.
        reason: why nobody could see it.
    """

    file: str
    line: str
    operators: tuple[str, ...]
    reason: str

    def fits(self, mutant: Mutant) -> bool:
        """Return whether a mutant is one of these."""
        return (
            (self.file, self.line) == (mutant.file, mutant.text)
            and any(part in mutant.operator for part in self.operators)
        )  # fmt: skip


def listed_equivalents(file: Path = EQUIVALENT) -> list[Equivalent]:
    """Return the mutants that are listed as equivalent."""
    rows = tomllib.loads(file.read_text(encoding="utf-8"))["mutant"]
    return [Equivalent(**row | {"operators": tuple(row["operators"])}) for row in rows]


def draw(mutants: Iterable[Mutant], size: int, seed: str) -> list[Mutant]:
    """Draw mutants, at most one per place in the code, so that no place weighs more.

    A place with a `*` has six mutants and one with an `and` a single one; both are drawn alike.
    """

    def place(mutant: Mutant) -> tuple[str, int, int]:
        return mutant.file, mutant.line, mutant.column

    chance = random.Random(seed)
    places = [list(group) for _, group in groupby(sorted(mutants, key=place), key=place)]
    return [chance.choice(group) for group in chance.sample(places, min(size, len(places)))]


def wilson(noticed: int, tried: int) -> tuple[float, float]:
    """The 95 % interval of a share (E. B. Wilson, JASA 22, 1927); (0, 1) if nothing was tried."""
    if not tried:
        return 0.0, 1.0
    share, z2 = noticed / tried, _Z**2 / tried
    centre = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / tried + z2 / (4 * tried)) / (1 + z2)
    return max(0.0, centre - half), min(1.0, centre + half)
