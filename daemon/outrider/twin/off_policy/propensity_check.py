"""Whether starts fell on machines as the incumbent's claimed chances say.

An estimate by weights divides by those chances, so wrong ones make it worthless. Under the claim
the starts on a machine are a sum of independent draws: its count is compared with its expectation.
"""

from collections import Counter, defaultdict
from collections.abc import Collection, Mapping
from math import copysign, log, sqrt
from statistics import NormalDist
from typing import Final

import msgspec

BOUND: Final = 4.0
"""The greatest |z| of a group that is believed to be chance: one in 16,000."""


class PropensityCheck(msgspec.Struct, frozen=True):
    """How far counts are from what chance allows.

    Attributes:
        groups: z by machine group: standard errors by which starts there exceed expectation.
        groups_bound: their |z| may not be greater.
        machine: the machine with the greatest |z|; None without starts.
        machine_z: its z.
        machines_bound: |z| of a machine may not be greater: the probability of `groups_bound`,
            divided by the number of machines (Bonferroni).
    """

    groups: Mapping[str, float]
    groups_bound: float
    machine: str | None
    machine_z: float
    machines_bound: float

    def failures(self) -> list[str]:
        """What contradicts the claim, as sentences; empty where nothing does."""
        told = [
            f"machine group {name}: z = {z:+.1f}, and at most {self.groups_bound:g} is chance"
            for name, z in self.groups.items()
            if abs(z) > self.groups_bound
        ]
        if abs(self.machine_z) > self.machines_bound:
            told.append(
                f"machine {self.machine}: z = {self.machine_z:+.1f}, and at most "
                f"{self.machines_bound:.1f} is chance"
            )
        return told


class ChoiceCounts:
    """Counts choices between alternatives, and what to expect of each."""

    def __init__(self) -> None:
        self._chosen: Counter[int] = Counter()
        self._open: Counter[int] = Counter()
        self._expected: defaultdict[int, float] = defaultdict(float)
        self._variance: defaultdict[int, float] = defaultdict(float)

    def add(self, chosen: int, chances: Mapping[int, float]) -> None:
        """One choice; `chances` are the probabilities of all alternatives, `chosen` among them."""
        if len(chances) < 2:  # there was no other: it tells nothing
            return
        self._chosen[chosen] += 1
        for alternative, chance in chances.items():
            self._open[alternative] += 1
            self._expected[alternative] += chance
            self._variance[alternative] += chance * (1.0 - chance)

    def add_uniform(self, chosen: int, alternatives: Collection[int]) -> None:
        """One choice between alternatives that are equally likely."""
        self.add(chosen, dict.fromkeys(alternatives, 1.0 / len(alternatives)))

    def z(self) -> dict[int, float]:
        """Standard errors by which each alternative was chosen too often (+) or too rarely (-).

        The signed root of the deviance of a binomial count with half a count of continuity, which
        is nearer to normal in the tails of small counts than (observed - expected) / error is
        (McCullagh and Nelder, "Generalized Linear Models", 1989, section 2.4.3), scaled to the
        variance of the unequal chances.
        """
        return {
            which: _signed_root(self._chosen[which], expected, self._open[which])
            * sqrt(expected * (1.0 - expected / self._open[which]) / self._variance[which])
            for which, expected in self._expected.items()
        }


def _signed_root(observed: int, expected: float, of: int) -> float:
    beyond = abs(observed - expected) - 0.5
    if beyond <= 0.0:
        return 0.0
    sign = copysign(1.0, observed - expected)
    count = expected + sign * beyond
    own = count * log(count / expected)
    rest = (of - count) * log((of - count) / (of - expected))
    return sign * sqrt(2.0 * (own + rest))


def checked(
    groups: ChoiceCounts,
    machines: ChoiceCounts,
    group_names: Mapping[int, str],
    machine_names: Mapping[int, str],
) -> PropensityCheck:
    """The check of all choices counted; names are by number."""
    of_machines = machines.z()
    worst = max(of_machines, key=lambda which: abs(of_machines[which]), default=None)
    tail = NormalDist().cdf(-BOUND) / max(1, len(of_machines))
    return PropensityCheck(
        {group_names[which]: z for which, z in sorted(groups.z().items())},
        BOUND,
        None if worst is None else machine_names[worst],
        0.0 if worst is None else of_machines[worst],
        -NormalDist().inv_cdf(tail),
    )
