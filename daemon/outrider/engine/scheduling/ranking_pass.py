"""A round over the whole queue: all that wait are ranked, and the first in line start.

A job that does not fit keeps those behind it waiting, unless the site's rule lets some pass (see
`outrider.engine.scheduling.backfill`), or no machine that is open is wide enough for it.
"""

from math import inf, isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.engine.scheduling.backfill import EASY, NONE, Begun, reserve_first, who_may_pass
from outrider.engine.scheduling.pending_jobs import Standing
from outrider.engine.scheduling.placement import fits_an_open_machine
from outrider.engine.scheduling.queue_pass import QueuedRound
from outrider.engine.scheduling.scheduling_pass import Tally
from outrider.engine.state.runs import ExpectedEnd
from outrider.engine.state.site import Site
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice
from outrider.model.jobs import Job

_LAST: Final = np.finfo(float).max


class QueueRound(QueuedRound):
    """Ranks every waiting job whenever a CPU is free, and starts the first that fit.

    Args:
        seat: whose policy and whose line.
        backfill: `NONE`, or `EASY`: whether jobs may pass one that does not fit.
    """

    def __init__(self, seat: Tally, backfill: str = NONE) -> None:
        super().__init__(seat)
        self._backfill = backfill
        self._ranks = seat.policy if isinstance(seat.policy, Ranks) else None
        self._begun: list[Begun] = []
        self._decided: set[int] = set()
        self._resting: set[int] = set()  # kept by choice until the line says that they are due

    def _decide(self) -> None:
        newcomers = self._admit()
        self._begun.clear()
        self._decided.clear()
        if self._site.free_total and self.table.jobs:
            self._start_the_first()
        for job, standing in newcomers:
            if standing.decided_s != self._site.now:
                self._note_no_machine(job.number, standing)

    def _start_the_first(self) -> None:
        """Start the first in line, then the next, until one does not fit."""
        places = self._places()
        while self._site.free_total and len(places):
            row = int(places.argmin())
            if places[row] == inf:
                return
            job = self.table.jobs[row]
            choice = self._place(job)
            if choice.machine == NOWHERE:
                places[row] = inf
                if choice.reason != NO_MACHINE:  # its policy keeps it, and looks at the next
                    continue
                self._note_no_machine(job.number, self._line.waiting[job.number])
                if not fits_an_open_machine(self._site, job.spec):
                    continue
                if self._backfill == EASY:
                    self._let_pass(job, places)
                return
            self._begin(job, choice)
            if self._ranks is not None and self._ranks.ranks_anew:
                places = self._places()
            elif self._sink is None:
                places[row] = inf
            else:
                places = np.delete(places, row)

    def _place(self, job: Job) -> Choice:
        """Where a job may start now; if its policy keeps it, it rests."""
        standing = self._line.waiting[job.number]
        choice, left_s = self._ask(job, standing)
        if choice.machine == NOWHERE and choice.reason != NO_MACHINE:
            self._resting.add(job.number)
            self._keep(job.number, standing, choice, left_s)
        return choice

    def _places(self) -> NDArray[np.float64]:
        """Where each stands; at infinity who rests, or was decided in this round (in shadow)."""
        if not self.table.jobs:
            return np.empty(0)
        table, ranks = self.table, self._ranks
        said = table.order if ranks is None else ranks.rank(table, self._site)
        said = np.asarray(said, dtype=float)
        # here infinity is for those who must not start; who is to come last may have said it too
        places: NDArray[np.float64] = np.nan_to_num(said, nan=inf, posinf=_LAST)
        apart = self._decided | self._resting
        if apart:
            places[[job.number in apart for job in self.table.jobs]] = inf
        return places

    def _begin(self, job: Job, choice: Choice) -> float:
        """Start a job; returns when it is expected to end."""
        standing = self._line.waiting[job.number]
        self._note_start(job, standing, choice)
        end_s = self._expected_end_s(job, choice.machine)
        self._begun.append((choice.machine, ExpectedEnd(end_s, job.number, job.spec.cpus)))
        if self._sink is None:
            self._decided.add(job.number)
        else:
            self.leave(job, standing)
        return end_s

    def _expected_end_s(self, job: Job, machine: int) -> float:
        estimate_s = job.spec.estimate_s
        if estimate_s is None or isnan(estimate_s):
            return inf
        return self._site.now + estimate_s / self._site.speed_of(machine)

    def _let_pass(self, first: Job, places: NDArray[np.float64]) -> None:
        """Start those behind the first in line that do not delay it."""
        site, table = self._site, self.table
        reservation = reserve_first(first.spec.cpus, site, self._begun)
        widest = max(map(site.cpus_left, site.free_since), default=0)
        for job in [table.jobs[row] for row in who_may_pass(table, places, widest)]:
            if not site.free_total:
                return
            choice = self._place(job)
            machine, cpus = choice.machine, job.spec.cpus
            if machine == NOWHERE:
                continue
            if reservation.allows(machine, cpus, self._expected_end_s(job, machine)):
                reservation = reservation.after(machine, cpus, self._begin(job, choice))

    # -- who rests ----------------------------------------------------------------------------

    def _is_due(self, number: int) -> None:
        self._resting.discard(number)

    def withdrew(self, standing: Standing, site: Site) -> None:
        """A job is no longer in line."""
        job = self.table.at(standing.stamp) if self._resting else None
        if job is not None:
            self._resting.discard(job.number)
        super().withdrew(standing, site)

    def clear(self) -> None:
        """Everybody goes."""
        super().clear()
        self._resting.clear()

    def save(self) -> dict[str, Any]:
        """The queue and who rests, as plain data."""
        return super().save() | {"resting": sorted(self._resting)}

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Go on from what `save` gave."""
        super().restore(saved, site)
        self._resting = set(saved.get("resting", ()))
