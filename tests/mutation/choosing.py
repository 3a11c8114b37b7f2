"""Selection, order and time limits of the tests that run a mutated line."""

from collections.abc import Collection, Mapping, Sequence
from typing import Final, NamedTuple

FIRST_S: Final = 4.0
"""The nearest and quickest tests are asked alone at first: most faults end there."""
HANGS_AFTER: Final = 6.0
"""A test hangs that takes so many times as long as it did ..."""
HANGS_AFTER_S: Final = 15.0
"""... and so many seconds on top, for a machine that has other work."""


class Choice(NamedTuple):
    """Tests for one mutant.

    Attributes:
        first: ids, the nearest and quickest.
        then: ids, asked where the first notice nothing.
        cut_off: how many more run the line, but do not fit within the bound.
    """

    first: list[str]
    then: list[str]
    cut_off: int


def choose(
    tests: Collection[str], durations_s: Mapping[str, float], near: Sequence[str], bound_s: float
) -> Choice:
    """Order the tests that run a line, and take those that fit.

    Args:
        tests: their ids.
        durations_s: seconds of each.
        near: folders and files of tests, the one first whose matter the code is.
        bound_s: seconds for all that are asked.
    """

    def order(test: str) -> tuple[int, float, str]:
        far = next((n for n, path in enumerate(near) if _is_in(test, path)), len(near))
        return far, durations_s[test], test

    first: list[str] = []
    then: list[str] = []
    total_s, cut_off = 0.0, 0
    for test in sorted(tests, key=order):
        if total_s + durations_s[test] > bound_s:
            cut_off += 1
            continue
        total_s += durations_s[test]
        (first if total_s <= FIRST_S and not then else then).append(test)
    return Choice(first, then, cut_off)


def hangs_after_s(duration_s: float) -> float:
    """Seconds after which a test hangs that took so long without a mutant."""
    return HANGS_AFTER * duration_s + HANGS_AFTER_S


def _is_in(test: str, path: str) -> bool:
    return test.startswith((f"{path}/", f"{path}::"))
