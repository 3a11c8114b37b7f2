"""Within one plan, what its first moves take and free counts for those that follow."""

from collections.abc import Iterable

from outrider.api import PREEMPT, START, Move, Plans, Policy, Queue, SiteView
from outrider.model import events as ev
from outrider.model.machines import MachineSpec
from outrider.model.resources import Resources
from outrider.testing.hand_site import HandSite


class Listed(Plans, Policy):
    """Makes the moves that it is told to, all on machine 0."""

    name = "listed"
    description = "for tests: these moves"
    moves: tuple[tuple[str, int, int], ...] = ()

    def plan(self, queue: Queue, view: SiteView) -> Iterable[Move]:
        """Once each."""
        moves, self.moves = self.moves, ()
        return [Move(action, job, 0, cpus, "listed") for action, job, cpus in moves]


class PlannedSite(HandSite):
    """A site at which jobs can be suspended, too; one machine of 2 CPUs with a GPU."""

    def __init__(self) -> None:
        super().__init__(Listed)
        self.runner.strict = False
        self.preempted: list[int] = []
        self.tell(ev.JOINED, 0, MachineSpec(cpus=2, resources=Resources(gpus=1)))

    def preempt(self, job: int) -> None:
        self.preempted.append(job)

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        raise AssertionError("it is not asked to")

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
