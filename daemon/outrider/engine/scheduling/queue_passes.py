"""Passes over the whole queue: a policy ranks all waiting jobs, or plans the whole pass."""

from collections.abc import Hashable
from math import inf, isnan
from typing import Any, Final

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from outrider.api.capabilities import Orders, Plans, Ranks, SeesQueue
from outrider.engine.ports import Actuator, PlanActuator
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision, QueueColumns
from outrider.engine.scheduling.placement import find_refusal, fits_an_open_machine, kind_of
from outrider.engine.scheduling.reservations import Promises, promises_of
from outrider.engine.scheduling.scheduling_pass import Record, SchedulingPass
from outrider.engine.state.machines import Room
from outrider.engine.state.site import Site
from outrider.model.decisions import (
    NO_MACHINE,
    NOWHERE,
    PREEMPT,
    RESUME,
    SHRINK,
    START,
    Choice,
    Move,
)
from outrider.model.errors import PolicyError
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, RUNNING, SUSPENDED_STATE, Job

# -- queue pass ------------------------------------------------------------------------------------
# Common base of passes over the whole queue: its jobs, as columns that policies read.


class QueuePass(SchedulingPass):
    """Pass whose policy sees all pending jobs together.

    Attributes:
        table: the pending jobs, one row each.
    """

    def __init__(self, runner: GuardedPolicy) -> None:
        super().__init__(runner)
        self._orders = runner.policy if isinstance(runner.policy, Orders) else None
        self._observer = runner.policy if isinstance(runner.policy, SeesQueue) else None
        self.table = QueueColumns()

    def _admit(self) -> list[tuple[Job, PendingDecision]]:
        """Take the jobs that are due; add a row for each one that is new in the queue."""
        site, observer = self._site, self._observer
        due = []
        for number, pending in self._queue.take_fresh():
            job = site.jobs[number]
            if self.table.at(pending.stamp) is None:
                self.table.add(job, pending.stamp, site.now, self._order(job, site))
                if observer is not None:
                    observer.on_enqueue(job, site)
            self._is_due(number)
            due.append((job, pending))
        return due

    def _order(self, job: Job, site: Site) -> float:
        return 0.0 if self._orders is None else self._orders.order(job, site)

    def _is_due(self, number: int) -> None:
        """Note that a job is to be decided in this pass."""

    def on_dequeue(self, pending: PendingDecision, site: Site) -> None:
        """Remove a job that left the queue."""
        job = self.table.remove(pending.stamp)
        if job is not None and self._observer is not None:
            self._observer.on_dequeue(job, site)

    def changed(self, job: Job, pending: PendingDecision, site: Site) -> None:
        """Update a queued job that is declared again: to its policy as if it left and came back."""
        if self.table.at(pending.stamp) is None:
            return
        observer = self._observer
        if observer is not None:
            observer.on_dequeue(job, site)
        self.table.change(job, pending.stamp, self._order(job, site))
        if observer is not None:
            observer.on_enqueue(job, site)

    def leave(self, job: Job, pending: PendingDecision) -> None:
        """Remove a job that a move took out of the queue from the rest of this pass."""
        self.on_dequeue(pending, self._site)

    @property
    def any_waiting(self) -> bool:
        """True if any job here could use a machine that frees."""
        return bool(self.table.jobs)

    def clear(self) -> None:
        """Forget all jobs of the queue."""
        self.table = QueueColumns()

    def save(self) -> dict[str, Any]:
        """Return the queue, as plain data."""
        return self.table.save()

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Resume from what `save` returned."""
        if saved:  # not in a snapshot of a policy that decided job by job then
            self.table.restore(saved, site.jobs)


# -- ranking pass ----------------------------------------------------------------------------------
# A pass over the whole queue: all waiting jobs are ranked, and the first of them start.
#
# The queue discipline (`promises`) determines which jobs may pass one that does not fit now,
# whatever the order. No job waits behind one that its policy defers, or that fits on no open
# machine.

_LAST: Final = np.finfo(float).max


class RankingPass(QueuePass):
    """Pass that ranks every waiting job whenever a CPU is free, and starts the first that fit.

    Args:
        runner: the owner of policy and queue.
        discipline: one of `outrider.model.modes`.
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
            self._start_first(self._promises(self._site))
        for job, pending in newcomers:
            if pending.decided_s != self._site.now:
                self._note_no_machine(job.number, pending)

    def _start_first(self, promises: Promises) -> None:
        """Start the first in the queue, then the next, until one does not fit."""
        places = self._places()
        ranks_again = self._ranks is not None and self._ranks.ranks_anew
        while self._site.free_total and len(places):
            row = int(places.argmin())
            if places[row] == inf:
                return
            job = self.table.jobs[row]
            places[row] = inf
            choice = self._place(job, promises)
            if choice.machine != NOWHERE:
                self._begin(job, choice, promises)
                if ranks_again:
                    places = self._places()
                elif self._actuator is not None:
                    places[row:-1] = places[row + 1 :]
                    places = places[:-1]
            elif choice.reason == NO_MACHINE:
                self._waits.add(job.number)
                if not self._may_pass(job, promises):
                    return
                if not ranks_again or promises.fixes_order:
                    self._let_pass(places, promises)
                    return

    def _let_pass(self, places: NDArray[np.float64], promises: Promises) -> None:
        """Try the jobs behind the first that has to wait, in their order."""
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
                    # those before it fit on no open machine: this is the one that must not be
                    # delayed
                    by_length = True
                    jobs[tried_n:] = sorted(jobs[tried_n:], key=_length)

    def _behind(self, places: NDArray[np.float64], promises: Promises) -> list[int]:
        """Return the rows of waiting jobs that could start, in the order in which they are tried.

        By place; where the shortest comes first, by length, unknown lengths last, equal lengths by
        place.

        The promises rule out most of them by the columns: thousands may wait, and few of them can
            start.
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
        """Note that a job does not fit now; return whether others may start before it."""
        self._note_no_machine(job.number, self._queue.waiting[job.number])
        kind = kind_of(job.spec)
        fits = self._fits_if_empty.get(kind)
        if fits is None:
            fits = self._fits_if_empty[kind] = fits_an_open_machine(self._site, job.spec)
        return not fits or promises.wait(job)

    def _place(self, job: Job, promises: Promises) -> Choice:
        """Return where a job may start now; its policy may also defer it."""
        pending = self._queue.waiting[job.number]
        choice = self._ask(job, pending, promises.allows(job))
        if choice.machine == NOWHERE and choice.reason != NO_MACHINE:
            self._deferred.add(job.number)
            self._defer(job.number, pending, choice)
        return choice

    def _places(self) -> NDArray[np.float64]:
        """Return each job's place; infinite if deferred, waiting, awaited or decided."""
        places = self._ranking()
        awaited = self.awaited.jobs
        if self._decided or self._deferred or self._waits or awaited:
            apart = self._decided | self._deferred | self._waits | awaited.keys()
            places[[job.number in apart for job in self.table.jobs]] = inf
        return places

    def _ranking(self) -> NDArray[np.float64]:
        """Return the policy's ranking; all places are equal, by age, where it has none.

        Infinite where the policy returned nan. A policy may also return infinity for the last
        place, but here infinity is for jobs that must not start.
        """
        table, ranks = self.table, self._ranks
        if not table.jobs or (ranks is None and self._orders is None):
            return np.zeros(len(table.jobs))
        ranking = table.order if ranks is None else ranks.rank(table, self._site)
        ranking = np.asarray(ranking, dtype=float)
        if ranking.shape != (len(table.jobs),):
            raise ValueError(
                f"rank returned an array of shape {ranking.shape}; expected "
                f"({len(table.jobs)},): a place for each row of the queue"
            )
        places: NDArray[np.float64] = np.minimum(ranking, _LAST)
        unknown = np.isnan(places)
        if unknown.any():
            places[unknown] = inf
        return places

    def _begin(self, job: Job, choice: Choice, promises: Promises) -> None:
        """Start a job in this pass."""
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
        """Remove a job that left the queue."""
        job = self.table.at(pending.stamp) if self._deferred else None
        if job is not None:
            self._deferred.discard(job.number)
        super().on_dequeue(pending, site)

    def clear(self) -> None:
        """Forget all jobs, also deferred ones."""
        super().clear()
        self._deferred.clear()

    def save(self) -> dict[str, Any]:
        """Return the queue and the deferred jobs, as plain data."""
        return super().save() | {"resting": sorted(self._deferred)}

    def restore(self, saved: dict[str, Any], site: Site) -> None:
        """Resume from what `save` returned."""
        super().restore(saved, site)
        self._deferred = set(saved.get("resting", ()))


def _length(job: Job) -> float:
    """Return the sort key of jobs that pass: the estimate, infinite where there is none."""
    estimate_s = job.spec.estimate_s
    return inf if estimate_s is None or isnan(estimate_s) else estimate_s


# -- plan pass -------------------------------------------------------------------------------------
# A pass that the policy plans as a whole: starts, resumes, preemptions, CPU changes of runs.

_STATES: Final = {
    START: (QUEUED,),
    PREEMPT: (RUNNING,),
    RESUME: (SUSPENDED_STATE,),
    SHRINK: (QUEUED, RUNNING),
}
MAX_PLANS: Final = 1000
"""Maximum number of plans at one moment that move runs and start no job."""


class PlanPass(QueuePass):
    """Pass that requests a plan after every change, and executes its moves one by one.

    Moves are changes, too, so a policy must settle. A policy that moves runs back and forth at one
    moment, `MAX_PLANS` times without a start, is stopped.

    Args:
        runner: the owner of policy and queue.
        policy: the same policy, typed as one that plans.
    """

    asks = "plan"

    def __init__(self, runner: GuardedPolicy, policy: Plans) -> None:
        super().__init__(runner)
        self._planner = policy
        self._moment_s = -inf
        self._plans = 0

    def join(self, site: Site, actuator: Actuator | None, record: Record) -> None:
        """Bind to an engine, before the first decision."""
        super().join(site, actuator, record)
        self._plan_actuator = actuator if isinstance(actuator, PlanActuator) else None

    def _decide(self) -> None:
        newcomers = self._admit()
        site = self._site
        self._rooms: dict[int, Room] = {}  # what is left in this pass, by machine
        self._moved: set[int] = set()
        for move in list(self._planner.plan(self.table, site)):
            job = site.jobs.get(move.job)
            self._check(move, job)
            if job is not None and self._is_possible(move, job):
                self._apply(move, job)
        if self._actuator is not None and self._moved:
            self._count_plan()
        for job, pending in newcomers:
            if job.state == QUEUED and pending.decided_s != site.now:
                self._note_no_machine(job.number, pending)

    def _count_plan(self) -> None:
        """Count an executed plan. Raises `PolicyError` if plans follow each other without end."""
        site = self._site
        # jobs that start leave the queue, so that these plans end
        started = any(site.jobs[number].state == QUEUED for number in self._moved)
        if started or site.now != self._moment_s:
            self._moment_s, self._plans = site.now, 0
        self._plans += 1
        if self._plans > MAX_PLANS:
            raise PolicyError(
                f"{self._plans} plans at {site.now:g} s moved runs and started no job; expected "
                "no moves where only the policy's own moves happened since the last plan"
            )

    def _check(self, move: Move, job: Job | None) -> None:
        """Check that a move is possible. Raises `PolicyError`."""
        known = job is not None and job.state in _STATES.get(move.action, ())
        wrong = None
        if job is None or not known:
            state = "is unknown" if job is None else f"is {JOB_STATE_NAMES[job.state]}"
            wrong = f"the job {state}"
        elif move.job in self._moved:
            wrong = "the plan has moved the job already"
        elif move.action != PREEMPT and not 1 <= move.cpus <= job.spec.cpus:
            wrong = f"it asks for {job.spec.cpus} CPUs"
        elif move.action == START and move.cpus != job.spec.cpus:
            wrong = f"on fewer than its {job.spec.cpus} CPUs it is shrunk"
        elif job.state != QUEUED and move.machine != job.machine:
            wrong = f"its run is on machine {job.machine}"
        if wrong is not None:
            raise PolicyError(f"impossible move {move}: {wrong}")

    def _is_possible(self, move: Move, job: Job) -> bool:
        """Return whether a move can be placed; an impossible one is refused and skipped."""
        more_cpus = move.cpus - (job.cpus if job.state == RUNNING else 0)
        if more_cpus <= 0:
            return True
        spec = job.spec
        if job.state == RUNNING and spec.resources is not None:  # it has them already
            spec = replace(spec, resources=None)
        room = self._room(move.machine)
        refusal = find_refusal(self._site, spec, move.machine, more_cpus, room)
        if refusal is not None:
            self._runner.refuse(job, move.machine, refusal)
        return refusal is None

    def _room(self, machine: int) -> Room | None:
        """Return what this plan has left of a machine; None if there is no such machine."""
        if not (isinstance(machine, int) and 0 <= machine < self._site.machines_n):
            return None
        if machine not in self._rooms:
            self._rooms[machine] = self._site.room(machine)
        return self._rooms[machine]

    def _apply(self, move: Move, job: Job) -> None:
        """Update the free capacity for a move, record the move, and execute it."""
        room = self._room(move.machine)
        if room is not None:
            self._update_room(move, job, room)
        self._moved.add(move.job)
        pending = self._queue.waiting.get(job.number)
        if self._actuator is None and not self._is_new(move, pending):
            return
        self._record_move(move, job, pending)
        if self._actuator is not None:
            self._execute(move, job)
            if pending is not None:
                self.leave(job, pending)

    def _update_room(self, move: Move, job: Job, room: Room) -> None:
        """Update a machine's free capacity for a move."""
        if job.state == RUNNING:
            room.give_back(job.cpus, job.spec.resources)
        if move.action != PREEMPT:
            room.take(move.cpus, job.spec.resources)

    def _is_new(self, move: Move, pending: PendingDecision | None) -> bool:
        """Return whether a move is new; in shadow a pending one is not recorded again."""
        if pending is None:  # it concerns a run; the batch system will not follow
            return False
        cluster = self._site.machine_cluster[move.machine]
        return (pending.action, pending.cluster) != (move.action, cluster)

    def _record_move(self, move: Move, job: Job, pending: PendingDecision | None) -> None:
        site, runner = self._site, self._runner
        if pending is not None:
            pending.action, pending.reason = move.action, move.reason
            pending.cluster = site.machine_cluster[move.machine]
            pending.decided_s = site.now
        if move.action == START:
            runner.starts += 1
        else:
            runner.moves[move.action] += 1
        choice = Choice(move.machine, move.reason, move.propensity, move.scores)
        self._record_decision(job.number, move.action, move.cpus, choice)

    def _execute(self, move: Move, job: Job) -> None:
        actuator, planned, number = self._actuator, self._plan_actuator, job.number
        if move.action == START and actuator is not None:
            actuator.start(number, move.machine)
        elif planned is None:
            raise PolicyError(f"{move.action}: jobs at this site can only be started")
        elif move.action == SHRINK:
            planned.shrink(number, move.machine, move.cpus)
        elif move.action == PREEMPT:
            planned.preempt(number)
        else:
            planned.resume(number, move.cpus)
