"""Machines of one cluster that are interrupted about equally often."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.api import NOWHERE

Floats = NDArray[np.float64]
Numbers = NDArray[np.intp]

FRAILTY_STEPS: Final = np.array([0.35, 0.6, 1.0, 1.7, 4.0])
"""Machines of one cluster whose frailties lie between two of these steps are taken for alike."""


class Groups(NamedTuple):
    """Machines taken for alike, group by group.

    Attributes:
        cluster: (groups,) where they stand.
        clusters: the same as a list, for choices one at a time.
        peopled: clusters that have machines.
        firsts: the first group of each of these.
        frailty: (groups,) mean of theirs.
        machines: their numbers, the least frail first.
        of_machine: the group of each machine, by machine number; `NOWHERE` if it left.
    """

    cluster: Numbers
    clusters: list[int]
    peopled: list[int]
    firsts: Numbers
    frailty: Floats
    machines: list[list[int]]
    of_machine: list[int]


def group(machine: Numbers, cluster: Numbers, frailties: Floats) -> Groups:
    """Group the machines of each cluster by frailty.

    Args:
        machine: numbers of the machines.
        cluster: where each of them stands.
        frailties: by machine number.
    """
    # complex numbers are sorted by the first part, then by the second: lexsort takes thrice as long
    order = (cluster + 1j * frailties[machine]).argsort(kind="stable")
    machine, cluster = machine[order], cluster[order]
    frailty = frailties[machine]
    step = np.searchsorted(FRAILTY_STEPS, frailty)
    differs = (np.diff(step) != 0) | (np.diff(cluster) != 0)
    begins = np.flatnonzero(np.append(True, differs)[: len(machine)])
    peopled, firsts = np.unique(cluster[begins], return_index=True)
    ends = np.append(begins[1:], len(machine))[: len(begins)]
    numbers = machine.tolist()
    machines = [numbers[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    of_machine = np.full(len(frailties), NOWHERE)
    of_machine[machine] = np.repeat(np.arange(len(begins)), ends - begins)
    return Groups(
        cluster[begins],
        cluster[begins].tolist(),
        peopled.tolist(),
        firsts,
        np.add.reduceat(frailty, begins) / (ends - begins),
        machines,
        of_machine.tolist(),
    )
