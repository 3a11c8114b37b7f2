"""EASY backfill: later jobs may pass the first in line if they do not delay it.

Lifka 1995 (the ANL/IBM SP scheduling system): the first job that does not fit gets a reservation
at the earliest moment at which, by the estimates, enough CPUs will be free. Others may start now
if they end before that moment, or use only CPUs that it will not need.
"""

import heapq
from collections.abc import Iterable, Sequence
from math import inf
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.engine.scheduling.queue_columns import QueueTable
from outrider.engine.state.runs import ExpectedEnd
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE

NONE: Final = "none"
EASY: Final = "easy"
RULES: Final = (NONE, EASY)

Begun = tuple[int, ExpectedEnd]
"""A run that this round begins: its machine and expected end."""


class Reservation(NamedTuple):
    """What the first in line is promised.

    Attributes:
        machine: where.
        start_s: when at the latest, if the estimates hold; inf: nobody knows.
        spare: CPUs of the machine that are left over at that moment.
    """

    machine: int
    start_s: float
    spare: int

    def allows(self, machine: int, cpus: int, end_s: float) -> bool:
        """Whether a job may start now that expects to end at `end_s`."""
        return machine != self.machine or self._ends_before(end_s) or cpus <= self.spare

    def after(self, machine: int, cpus: int, end_s: float) -> "Reservation":
        """What is left of it when that job has started."""
        if machine != self.machine or self._ends_before(end_s):
            return self
        return self._replace(spare=self.spare - cpus)

    def _ends_before(self, end_s: float) -> bool:
        return end_s <= self.start_s < inf  # nobody passes a start that cannot be foreseen


def reserve_first(cpus: int, site: Site, begun: Sequence[Begun]) -> Reservation:
    """The earliest start of a job on so many CPUs, over all machines that are wide enough.

    Args:
        cpus: that it asks for.
        site: now, with what this round has begun reserved.
        begun: what this round has begun.
    """
    best = Reservation(NOWHERE, inf, 0)
    for machine in range(site.machines_n):
        if site.cpus_of(machine) >= cpus:
            found = _on_machine(machine, cpus, site, begun)
            if best.machine == NOWHERE or found.start_s < best.start_s:
                best = found
    return best


def _on_machine(machine: int, cpus: int, site: Site, begun: Sequence[Begun]) -> Reservation:
    known: Iterable[ExpectedEnd] = () if site.runs is None else site.runs.ends(machine)
    fresh = sorted(end for where, end in begun if where == machine)
    left = site.cpus[machine] - site.busy[machine]
    for end in heapq.merge(known, fresh) if fresh else known:
        left += end.cpus
        if left >= cpus:
            return Reservation(machine, max(site.now, end.end_s), left - cpus)
    return Reservation(machine, inf, 0)


def who_may_pass(queue: QueueTable, places: NDArray[np.float64], widest: int) -> list[int]:
    """Rows of those that could fit somewhere now, in the order of their places."""
    rows = np.flatnonzero((queue.cpus <= widest) & (places < inf))
    in_line: list[int] = rows[np.argsort(places[rows], kind="stable")].tolist()
    return in_line
