"""Checks of plans: moves of known jobs, possible together in their order."""

from collections.abc import Sequence
from typing import Any, Final

from outrider.api.queue import Queue
from outrider.engine.state.site import Site
from outrider.model.decisions import PREEMPT, RESUME, SHRINK, START, Move
from outrider.model.jobs import JOB_STATE_NAMES, QUEUED, RUNNING, SUSPENDED_STATE, Job
from outrider.testing.conformance import expect

_MAY_BE: Final = {
    START: (QUEUED,),
    SHRINK: (QUEUED, RUNNING),
    PREEMPT: (RUNNING,),
    RESUME: (SUSPENDED_STATE,),
}


def check_plan(moves: Sequence[Any], site: Site, where: str) -> None:
    """Check that every move is possible after those before it."""
    left = [site.cpus_of(m) - site.busy[m] for m in range(site.machines_n)]
    moved: set[int] = set()
    for number, move in enumerate(moves, 1):
        at = f"{where}, move {number}"
        expect(isinstance(move, Move), f"{at}: plan() must give Moves: {move!r}")
        job = _job_of(move, site, at)
        expect(job.number not in moved, f"{at}: job {job.number} was moved already: {move}")
        moved.add(job.number)
        _check_place(move, job, site, at)
        has = job.cpus if job.state == RUNNING else 0
        left[move.machine] -= move.cpus - has
        expect(
            move.cpus <= has or left[move.machine] >= 0,
            f"{at}: machine {move.machine} has {-left[move.machine]} CPUs too few for {move}",
        )


def _job_of(move: Move, site: Site, at: str) -> Job:
    """The job of a move, checked to be in a state that allows it."""
    expect(
        move.action in _MAY_BE,
        f"{at}: action {move.action!r}; right would be one of {', '.join(_MAY_BE)}",
    )
    expect(move.job in site.jobs, f"{at}: job {move.job!r} is not known: {move}")
    job = site.jobs[move.job]
    expect(job.state in _MAY_BE[move.action], f"{at}: it is {JOB_STATE_NAMES[job.state]}: {move}")
    return job


def _check_place(move: Move, job: Job, site: Site, at: str) -> None:
    """Check the machine (that of the run, if there is one) and the CPUs."""
    machine, cpus, asked = move.machine, move.cpus, job.spec.cpus
    known = isinstance(machine, int) and 0 <= machine < site.machines_n
    expect(known, f"{at}: there is no machine {machine!r}: {move}")
    expect(
        job.state == QUEUED or machine == job.machine,
        f"{at}: its run is on machine {job.machine}; runs do not move: {move}",
    )
    if move.action == PREEMPT:
        expect(cpus == 0, f"{at}: a preempted run has 0 CPUs, not {cpus!r}: {move}")
    elif move.action == START:
        expect(cpus == asked, f"{at}: a start gives all {asked} CPUs it requests: {move}")
    else:
        expect(1 <= cpus <= asked, f"{at}: right would be 1 to {asked} CPUs: {move}")


def copy_of_queue(queue: Queue) -> tuple[Any, ...]:
    """A copy of everything of the queue that a policy could change."""
    columns = (queue.submit_s, queue.estimate_s, queue.order, queue.cpus, queue.vo)
    return ([job.number for job in queue.jobs], *(column.tobytes() for column in columns))
