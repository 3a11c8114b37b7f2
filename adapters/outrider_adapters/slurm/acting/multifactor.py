"""How priority/multifactor makes a job's priority, as far as levers change a part of it.

Age: where Slurm enforces limits of accounts (`AccountingStorageEnforce`), a new start time makes it
count the job's age anew from then on. Elsewhere the age goes on, and nothing is lost.
"""

import re
from collections.abc import Mapping
from math import ceil
from typing import Final, NamedTuple

from outrider.api import PeerError
from outrider_adapters.readers.slurm.times import limit_s

_TYPE: Final = "priority/multifactor"
_NUMBER: Final = re.compile(r"\d+(?:\.\d+)?")
_LEAST_RAISE: Final = 1_000
_MOST_RAISE: Final = 1_000_000_000
"""A site factor is a number of 31 bits, and so is a nice value."""


class Age(NamedTuple):
    """How Slurm makes priority of age.

    Attributes:
        weight: priority of a job of the greatest age.
        most_s: the greatest age.
        step: what is given back is a multiple of it, so that many jobs are given the same.
    """

    weight: int
    most_s: float
    step: int

    def points(self, since_s: float, at_s: float) -> float:
        """Priority at a time, for a job whose age counts since another."""
        return self.weight * min(max(at_s - since_s, 0.0), self.most_s) / self.most_s

    def lost(self, since_s: float, counted_s: float, at_s: float) -> int:
        """What is missing at a time, in whole steps.

        Args:
            since_s: since when the age would count.
            counted_s: since when Slurm counts it instead.
            at_s: the time.
        """
        missing = self.points(since_s, at_s) - self.points(counted_s, at_s)
        return round(missing / self.step) * self.step

    def right_until_s(self, since_s: float, at_s: float) -> float:
        """Until when what is missing stays what it is at a time: then the true age is greatest."""
        full_s = since_s + self.most_s
        return full_s if at_s < full_s else at_s + self.step * self.most_s / self.weight


def lost_age(config: Mapping[str, str], lease_s: float) -> Age | None:
    """How age counts, where moving a start time takes it; None where it takes nothing.

    Args:
        config: of Slurm.
        lease_s: by how much a start time is moved at a time; a step is what age counts meanwhile.
    """
    weight = config.get("PriorityWeightAge", "0")
    most_s = limit_s(config.get("PriorityMaxAge", ""))
    enforced = config.get("AccountingStorageEnforce", "").replace(" ", "").split(",")
    if (
        not is_multifactor(config)
        or not weight.isdecimal()
        or not int(weight)
        or not most_s
        or not {"limits", "safe", "all"} & set(enforced)
        or "ACCRUE_ALWAYS" in config.get("PriorityFlags", "")
    ):
        return None
    return Age(int(weight), most_s, max(1, ceil(int(weight) * lease_s / most_s)))


def is_multifactor(config: Mapping[str, str]) -> bool:
    """Whether a Slurm makes priorities of factors at all, by its configuration."""
    return config.get("PriorityType", "") == _TYPE


def raise_above(config: Mapping[str, str]) -> int:
    """By how much a priority is raised to be above all that its factors can make of another.

    Args:
        config: of Slurm.
    """
    weights = [value for name, value in config.items() if name.startswith("PriorityWeight")]
    most = sum(float(number) for value in weights for number in _NUMBER.findall(value))
    return int(min(max(most + 1, _LEAST_RAISE), _MOST_RAISE))


def check_can_be_changed(config: Mapping[str, str], wanted: str) -> None:
    """Whether this Slurm makes priorities of factors that Outrider may change.

    Args:
        config: of Slurm.
        wanted: the setting for which they are changed, as it is written.

    Raises:
        PeerError: it does not; the message says what would be right.
    """
    if not is_multifactor(config):
        kind = config.get("PriorityType", "none")
        raise PeerError(f"{wanted} needs PriorityType={_TYPE}, and this Slurm has {kind}")
    plugin = config.get("PrioritySiteFactorPlugin", "")
    is_anothers = plugin not in ("", "(null)", "site_factor/none")
    if is_anothers and "nice" not in wanted:
        raise PeerError(
            f"{wanted} needs the site factor for itself, and this Slurm has {plugin} write it; "
            'right would be order_by = "nice", and keeps_age = false'
        )
