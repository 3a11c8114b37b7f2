"""A pass that the policy plans as a whole: starts, resumes, preemptions, other CPUs for runs."""

from math import inf
from typing import Final

from msgspec.structs import replace

from outrider.api.capabilities import Plans
from outrider.engine.ports import Actuator, PlanActuator
from outrider.engine.scheduling.guarded_policy import GuardedPolicy
from outrider.engine.scheduling.pending_queue import PendingDecision
from outrider.engine.scheduling.placement import find_refusal
from outrider.engine.scheduling.queue_pass import QueuePass
from outrider.engine.scheduling.scheduling_pass import Record
from outrider.engine.state.room import Room
from outrider.engine.state.site import Site
from outrider.model.decisions import PREEMPT, RESUME, SHRINK, START, Choice, Move
from outrider.model.errors import PolicyError
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, RUNNING, SUSPENDED_STATE, Job

_STATES: Final = {
    START: (QUEUED,),
    PREEMPT: (RUNNING,),
    RESUME: (SUSPENDED_STATE,),
    SHRINK: (QUEUED, RUNNING),
}

MOST_PLANS: Final = 1000
"""Plans at one moment that move runs and start no job; more would never end."""


class PlanPass(QueuePass):
    """Asks for a plan after every change, and carries out its moves one by one.

    Moves are changes, too: a policy must come to rest. One that moves runs to and fro at one
    moment, `MOST_PLANS` times without a start, is stopped.

    Args:
        runner: whose policy and whose queue.
        policy: that policy, as one that plans.
    """

    asks = "plan"

    def __init__(self, runner: GuardedPolicy, policy: Plans) -> None:
        super().__init__(runner)
        self._planner = policy
        self._moment_s = -inf
        self._plans = 0

    def join(self, site: Site, actuator: Actuator | None, record: Record) -> None:
        """As of every pass."""
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
        """A plan was carried out. Raises `PolicyError` if plans follow each other without end."""
        site = self._site
        # who starts leaves the queue, so that these plans end by themselves
        started = any(site.jobs[number].state == QUEUED for number in self._moved)
        if started or site.now != self._moment_s:
            self._moment_s, self._plans = site.now, 0
        self._plans += 1
        if self._plans > MOST_PLANS:
            raise PolicyError(
                f"{self._plans} plans at {site.now:g} s moved runs and started no job; right "
                "would be no moves where nothing but the policy's own moves happened since the last"
            )

    def _check(self, move: Move, job: Job | None) -> None:
        """Refuse what cannot be. Raises `PolicyError`."""
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
        """The placement check; what is impossible is refused, and the rest of the plan goes on."""
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
        """What this plan has left of a machine; None if there is none of that number."""
        if not (isinstance(machine, int) and 0 <= machine < self._site.machines_n):
            return None
        if machine not in self._rooms:
            self._rooms[machine] = self._site.room(machine)
        return self._rooms[machine]

    def _apply(self, move: Move, job: Job) -> None:
        """Reckon what the move leaves, record it, and have it carried out."""
        room = self._room(move.machine)
        if room is not None:
            self._reckon(move, job, room)
        self._moved.add(move.job)
        pending = self._queue.waiting.get(job.number)
        if self._actuator is None and not self._is_news(move, pending):
            return
        self._write_down(move, job, pending)
        if self._actuator is not None:
            self._carry_out(move, job)
            if pending is not None:
                self.leave(job, pending)

    def _reckon(self, move: Move, job: Job, room: Room) -> None:
        """What the move leaves of the machine."""
        if job.state == RUNNING:
            room.give_back(job.cpus, job.spec.resources)
        if move.action != PREEMPT:
            room.take(move.cpus, job.spec.resources)

    def _is_news(self, move: Move, pending: PendingDecision | None) -> bool:
        """In shadow a move that is pending already is not recorded again."""
        if pending is None:  # it concerns a run; the batch system will not follow
            return False
        cluster = self._site.machine_cluster[move.machine]
        return (pending.action, pending.cluster) != (move.action, cluster)

    def _write_down(self, move: Move, job: Job, pending: PendingDecision | None) -> None:
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

    def _carry_out(self, move: Move, job: Job) -> None:
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
