"""Within one plan, what its first moves take and free counts for those that follow."""

from collections.abc import Iterable
from typing import Any

import pytest

from outrider.api import PREEMPT, RESUME, SHRINK, START, Move, Plans, Policy, Queue, SiteView
from outrider.model import events as ev
from outrider.model.errors import PolicyError
from outrider.model.machines import MachineSpec, Resources
from outrider.testing.fixtures import HandSite


class Listed(Plans, Policy):
    """Policy that makes the given moves, all on one machine."""

    name = "listed"
    description = "for tests: these moves"
    moves: tuple[tuple[str, int, int], ...] = ()
    machine: Any = 0

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Return each given move once."""
        moves, self.moves = self.moves, ()
        return [Move(action, job, self.machine, cpus, "listed") for action, job, cpus in moves]


class PlannedSite(HandSite):
    """A site at which jobs can be suspended, too; one machine of 2 CPUs with a GPU."""

    def __init__(self) -> None:
        super().__init__(Listed)
        self.runner.strict = False
        self.preempted: list[int] = []
        self.shrunk: list[tuple[int, int, int]] = []
        self.tell(ev.JOINED, 0, MachineSpec(cpus=2, resources=Resources(gpus=1)))

    def preempt(self, job: int) -> None:
        self.preempted.append(job)

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        self.shrunk.append((job, machine, cpus))

    def resume(self, job: int, cpus: int) -> None:
        raise AssertionError("it is not asked to")


def test_a_plan_does_not_give_more_cpus_than_a_machine_has() -> None:
    hand = PlannedSite()
    for job in range(3):
        hand.submit(job)
    hand.policy.moves = tuple((START, job, 1) for job in range(3))
    assert hand.tick() == [0, 1]
    assert hand.runner.refused == {"cpus": 1}
    assert hand.runner.queue.waiting.keys() == {2}


def test_who_is_preempted_leaves_cpus_and_gpu_to_the_next_of_the_plan() -> None:
    hand = PlannedSite()
    hand.submit(0, cpus=2, resources=Resources(gpus=1))
    hand.policy.moves = ((START, 0, 2),)
    assert hand.tick() == [0]
    hand.submit(1, cpus=2, resources=Resources(gpus=1))
    hand.policy.moves = ((PREEMPT, 0, 0), (START, 1, 2))
    assert hand.tick(1.0) == [1]
    assert hand.preempted == [0]
    assert hand.runner.refused == {}


def running(job: int = 0, cpus: int = 2, **spec: Any) -> PlannedSite:
    """A strict run, in which a job runs on all CPUs and another waits."""
    hand = PlannedSite()
    hand.runner.strict = True
    hand.submit(job, cpus=cpus, **spec)
    hand.policy.moves = ((START, job, cpus),)
    assert hand.tick() == [job]
    hand.submit(1, cpus=2)
    return hand


@pytest.mark.parametrize(
    ("move", "machine", "why"),
    [
        ((START, 7, 1), 0, "the job is unknown"),
        ((START, 0, 2), 0, "the job is running"),
        ((PREEMPT, 1, 0), 0, "the job is queued"),
        ((RESUME, 0, 2), 0, "the job is running"),
        ((SHRINK, 1, 3), 0, "it asks for 2 CPUs"),
        ((SHRINK, 0, 0), 0, "it asks for 2 CPUs"),
        ((START, 1, 1), 0, "on fewer than its 2 CPUs it is shrunk"),
        ((PREEMPT, 0, 0), 1, "its run is on machine 0"),
    ],
)
def test_a_move_that_cannot_be_is_told_with_why(
    move: tuple[str, int, int], machine: int, why: str
) -> None:
    hand = running()
    hand.machines(2)
    hand.policy.moves, hand.policy.machine = (move,), machine
    with pytest.raises(PolicyError, match=f"impossible move .*: {why}$"):
        hand.tick(1.0)


def test_no_job_is_moved_twice_in_a_plan() -> None:
    hand = running()
    hand.policy.moves = ((PREEMPT, 0, 0), (PREEMPT, 0, 0))
    with pytest.raises(PolicyError, match="the plan has moved the job already"):
        hand.tick(1.0)


@pytest.mark.parametrize("machine", [-1, 1, 7, "m0", None])
def test_a_machine_that_is_none_is_refused_and_the_rest_of_the_plan_goes_on(machine: Any) -> None:
    hand = PlannedSite()
    hand.submit(0)
    hand.policy.moves, hand.policy.machine = ((START, 0, 1),), machine
    assert hand.tick() == []
    assert hand.runner.refused == {"unknown_machine": 1}


def test_a_run_keeps_its_gpu_when_it_gets_more_cpus_and_leaves_them_when_it_gets_fewer() -> None:
    hand = running(resources=Resources(gpus=1))
    hand.policy.moves = ((SHRINK, 0, 1),)
    hand.tick(1.0)
    hand.tell(ev.RESIZED, 0, 1)
    hand.policy.moves = ((SHRINK, 0, 2),)
    hand.tick(1.0)
    assert hand.shrunk == [(0, 0, 1), (0, 0, 2)]
    assert hand.runner.refused == {}
    assert dict(hand.runner.moves) == {SHRINK: 2}


def test_a_site_at_which_jobs_can_only_be_started_takes_no_other_move() -> None:
    hand = HandSite(Listed)
    hand.machines(2)
    hand.submit(0)
    hand.policy.moves = ((START, 0, 1),)
    assert hand.tick() == [0]
    hand.policy.moves = ((PREEMPT, 0, 0),)
    hand.submit(1)
    with pytest.raises(PolicyError, match="preempt: jobs at this site can only be started"):
        hand.tick(1.0)
