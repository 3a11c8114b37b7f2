"""A pass over the whole queue: all that wait are ranked, and the first of them start.

Who may pass a job that does not fit now is the queue discipline's to say (`promises`), whatever the
order. Nobody waits behind a job that its policy defers, or that fits on no machine that is open.
"""

from collections.abc import Hashable
from math import inf, isnan
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from outrider.api.capabilities import Ranks
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision
from outrider.engine.scheduling.placement import fits_an_open_machine, kind_of
from outrider.engine.scheduling.queue_pass import QueuePass
from outrider.engine.scheduling.reservations import Promises, promises_of
from outrider.engine.state.site import Site
from outrider.model.decisions import NO_MACHINE, NOWHERE, Choice
from outrider.model.jobs import Job

_LAST: Final = np.finfo(float).max


class RankingPass(QueuePass):
    """Ranks every waiting job whenever a CPU is free, and starts the first that fit.

    Args:
        runner: whose policy and whose queue.
        discipline: one of `outrider.model.disciplines`.
    """

    def __init__(self, runner: GuardedPolicy, discipline: str) -> None:
        super().__init__(runner)
        self._promises = promises_of(discipline)
        self._ranks = runner.policy if isinstance(runner.policy, Ranks) else None
        self._decided: set[int] = set()  # in this pass, in shadow: they do not leave the queue
        self._waits: set[int] = set()  # in this pass they did not fit
        self._fits_if_empty: dict[Hashable, bool] = {}  # kinds of job, on machines that are open
        self._deferred: set[int] = set()  # by the policy, until the queue says that they are due

    def _decide(self) -> None:
        newcomers = self._admit()
        self._decided.clear()
        self._waits.clear()
        self._fits_if_empty.clear()
        if self._site.free_total and self.table.jobs:
            self._start_the_first(self._promises(self._site))
        for job, pending in newcomers:
            if pending.decided_s != self._site.now:
                self._note_no_machine(job.number, pending)

    def _start_the_first(self, promises: Promises) -> None:
        """Start the first in the queue, then the next, until one does not fit."""
        places = self._places()
        ranks_anew = self._ranks is not None and self._ranks.ranks_anew
        while self._site.free_total and len(places):
            row = int(places.argmin())
            if places[row] == inf:
                return
            job = self.table.jobs[row]
            places[row] = inf
            choice = self._place(job, promises)
            if choice.machine != NOWHERE:
                self._begin(job, choice, promises)
                if ranks_anew:
                    places = self._places()
                elif self._actuator is not None:
                    places[row:-1] = places[row + 1 :]
                    places = places[:-1]
            elif choice.reason == NO_MACHINE:
                self._waits.add(job.number)
                if not self._may_pass(job, promises):
                    return
                if not ranks_anew or promises.fixes_order:
                    self._let_pass(places, promises)
                    return

    def _let_pass(self, places: NDArray[np.float64], promises: Promises) -> None:
        """Go through those behind the first that has to wait, in the order they are tried."""
        site, table = self._site, self.table
        jobs = [table.jobs[row] for row in self._behind(places, promises)]
        by_length = promises.shortest_first
        for tried_n, job in enumerate(jobs, 1):
            if not site.free_total:
                return
            choice = self._place(job, promises)
            if choice.machine != NOWHERE:
                self._begin(job, choice, promises)
            elif choice.reason == NO_MACHINE:
                if not self._may_pass(job, promises):
                    return
                if promises.shortest_first and not by_length:
                    # those before it fit on no open machine: it is the one that nobody may delay
                    by_length = True
                    jobs[tried_n:] = sorted(jobs[tried_n:], key=_length)

    def _behind(self, places: NDArray[np.float64], promises: Promises) -> list[int]:
        """Rows of those that wait and that the promises do not rule out, as they are tried.

        By place; of equal length by place where the shortest comes first, unknown lengths last.

        Ruled out by a look at the columns: thousands may wait, and few of them can start.
        """
        (rows,) = promises.candidates(self.table).nonzero()
        if not len(rows):
            return []
        rows = rows[places[rows] < inf]
        rows = rows[places[rows].argsort(kind="stable")]
        if promises.shortest_first:
            rows = rows[self.table.estimate_s[rows].argsort(kind="stable")]
        in_turn: list[int] = rows.tolist()
        return in_turn

    def _may_pass(self, job: Job, promises: Promises) -> bool:
        """A job does not fit now: whether others may start before it."""
        self._note_no_machine(job.number, self._queue.waiting[job.number])
        kind = kind_of(job.spec)
        fits = self._fits_if_empty.get(kind)
        if fits is None:
            fits = self._fits_if_empty[kind] = fits_an_open_machine(self._site, job.spec)
        return not fits or promises.wait(job)

    def _place(self, job: Job, promises: Promises) -> Choice:
        """Where a job may start now; its policy may also defer it."""
        pending = self._queue.waiting[job.number]
        choice = self._ask(job, pending, promises.allows(job))
        if choice.machine == NOWHERE and choice.reason != NO_MACHINE:
            self._deferred.add(job.number)
            self._defer(job.number, pending, choice)
        return choice

    def _places(self) -> NDArray[np.float64]:
        """The place of each; infinite: deferred, waiting, awaited, or decided in this pass."""
        places = self._said()
        awaited = self.awaited.jobs
        if self._decided or self._deferred or self._waits or awaited:
            apart = self._decided | self._deferred | self._waits | awaited.keys()
            places[[job.number in apart for job in self.table.jobs]] = inf
        return places

    def _said(self) -> NDArray[np.float64]:
        """What the policy says of the order; all places are equal, by age, where it says nothing.

        Infinite where it said that it does not know. Who is to come last may have said infinity,
        too: here that is for those who must not start.
        """
        table, ranks = self.table, self._ranks
        if not table.jobs or (ranks is None and self._orders is None):
            return np.zeros(len(table.jobs))
        said = table.order if ranks is None else ranks.rank(table, self._site)
        said = np.asarray(said, dtype=float)
        if said.shape != (len(table.jobs),):
            raise ValueError(
                f"rank returned an array of shape {said.shape}; right would be "
                f"({len(table.jobs)},): a place for each row of the queue"
            )
        places: NDArray[np.float64] = np.minimum(said, _LAST)
        unknown = np.isnan(places)
        if unknown.any():
            places[unknown] = inf
        return places

    def _begin(self, job: Job, choice: Choice, promises: Promises) -> None:
        """Start a job."""
        pending = self._queue.waiting[job.number]
        self._note_start(job, pending, choice)
        promises.begin(job, choice.machine)
        if self._actuator is None:
            self._decided.add(job.number)
        else:
            self.leave(job, pending)

    # -- deferred jobs ------------------------------------------------------------------------

    def _is_due(self, number: int) -> None:
        self._deferred.discard(number)

    def on_dequeue(self, pending: PendingDecision, site: Site) -> None:
        """A job left the queue."""
        job = self.table.at(pending.stamp) if self._deferred else None
        if job is not None:
            self._deferred.discard(job.number)
        super().on_dequeue(pending, site)

    def clear(self) -> None:
        """Forget all jobs."""
        super().clear()
        self._deferred.clear()

    def save(self) -> dict[str, Any]:
        """The queue and the deferred jobs, as plain data."""
        return super().save() | {"resting": sorted(self._deferred)}

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Go on from what `save` gave."""
        super().restore(saved, site)
        self._deferred = set(saved.get("resting", ()))


def _length(job: Job) -> float:
    """By what those that pass are sorted: the estimate, infinite where there is none."""
    estimate_s = job.spec.estimate_s
    return inf if estimate_s is None or isnan(estimate_s) else estimate_s
