"""Partitions, reservations and the configuration, as ``scontrol`` shows them."""

import re
from math import inf
from typing import NamedTuple

from outrider_adapters.readers.slurm.hosts import hosts_of
from outrider_adapters.readers.slurm.times import limit_s

_PAIR = re.compile(r"(\w+)=(\S*)")
_UNLIMITED = 4_294_967_293


class Partition(NamedTuple):
    """What a partition asks of its jobs.

    Attributes:
        is_up: whether jobs are begun in it.
        max_s: longest time limit, seconds; None: none.
        least_nodes, most_nodes: of a job.
    """

    is_up: bool
    max_s: float | None
    least_nodes: int
    most_nodes: int

    def admits(self, limit_s: float | None, nodes: int) -> bool:
        """Whether a job of this time limit (None: unlimited) and so many nodes may start in it."""
        short = self.max_s is None or (limit_s is not None and limit_s <= self.max_s)
        return self.is_up and short and self.least_nodes <= nodes <= self.most_nodes


def partitions_of(shown: str) -> dict[str, Partition]:
    """Partitions by name, from what ``scontrol show partition -o`` prints."""
    return {
        pairs["PartitionName"]: Partition(
            is_up=pairs.get("State", "").upper() == "UP",
            max_s=limit_s(pairs.get("MaxTime", "")),
            least_nodes=_count(pairs.get("MinNodes", ""), 0),
            most_nodes=_count(pairs.get("MaxNodes", ""), _UNLIMITED),
        )
        for pairs in _pairs(shown)
        if "PartitionName" in pairs
    }


def reserved_nodes(shown: str) -> dict[str, frozenset[str]]:
    """Nodes of each reservation, from what ``scontrol show reservation -o`` prints."""
    return {
        pairs["ReservationName"]: frozenset(hosts_of(pairs.get("Nodes", "")))
        for pairs in _pairs(shown)
        if "ReservationName" in pairs
    }


def settings_of(shown: str) -> dict[str, str]:
    """Slurm's configuration by name, from what ``scontrol show config`` prints."""
    found: dict[str, str] = {}
    for line in shown.split("\n"):
        name, equals, value = line.partition("=")
        if equals:
            found.setdefault(name.strip(), value.strip())
    return found


def shown_for_s(config: dict[str, str]) -> float:
    """For how many seconds ``squeue`` shows jobs that have ended, by Slurm's configuration."""
    age = config.get("MinJobAge", "").partition(" ")[0]
    return float(_count(age, 0)) or inf  # of 0 Slurm says that it keeps them


def _pairs(shown: str) -> list[dict[str, str]]:
    found: list[dict[str, str]] = []
    for line in shown.split("\n"):
        pairs: dict[str, str] = {}
        for name, value in _PAIR.findall(line):
            pairs.setdefault(name, value)
        found.append(pairs)
    return found


def _count(text: str, otherwise: int) -> int:
    return int(text) if text.isascii() and text.isdigit() else otherwise
