"""The queue of a policy: what it remembers of deferred jobs, and what of those that left."""

from collections.abc import Sequence
from typing import Any

import pytest

from outrider.api import NOWHERE, Choice, Job, Policy, SiteView
from outrider.engine import Engine, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.scheduling.pending_queue import NEVER, PendingQueue
from outrider.engine.state.packing import unpack
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.jobs import JobSpec
from outrider.model.localtime import ZoneTime
from outrider.model.machines import MachineSpec
from outrider.testing.fixtures import KeptDecisions, chance

EPOCH_S = 3600.0


class Defers(Policy):
    """Policy that defers every job."""

    name = "defers"
    description = "for tests"

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        return Choice(NOWHERE, "later")


class Starts(Policy):
    """Starts every job, by the default of `Policy.choose`."""

    name = "starts"
    description = "for tests"


class Shadow:
    """A site on which one policy in shadow decides; the test plays the batch system."""

    def __init__(self, kind: type[Policy], reconsider_s: float = EPOCH_S) -> None:
        clock = ZoneTime("UTC")
        site = Site(clock, [])
        policy = kind(kind.settings_type(), chance(kind.name))
        self.runner = PolicyRunner(policy, False, reconsider_s)
        log = KeptDecisions(site)
        self.engine = Engine(site, Accounting(clock), [self.runner], self, log)
        self.engine.feed([(0.0, ev.JOINED, 0, MachineSpec(cpus=100))])

    def start(self, job: int, machine: int) -> None:
        """Ignore starts: in shadow there are none."""

    def wake_at(self, time_s: float) -> None:
        """Ticks are the test's."""

    def tell(self, time_s: float, kind: int, jobs: Sequence[int], extra: Any) -> None:
        """The same happens to several jobs."""
        self.engine.feed([(time_s, kind, job, extra) for job in jobs])

    def tick(self, time_s: float) -> None:
        """Run a scheduling pass at a time."""
        self.engine.feed([(time_s, ev.TICK, 0, None)])

    @property
    def deferred(self) -> list[int]:
        """Jobs that are due again at a set time, in the order in which they are."""
        return [job for _, job, _ in unpack(self.runner.queue.save()["deferred"])]


@pytest.mark.parametrize("kind", [Defers, Starts])
@pytest.mark.parametrize(
    ("leave", "extra"), [(ev.REMOVED, "removed"), (ev.STARTED, (0, 1)), (ev.HELD, None)]
)
def test_a_job_that_leaves_is_not_remembered_behind_one_that_stays(
    kind: type[Policy], leave: int, extra: Any
) -> None:
    shadow = Shadow(kind)
    shadow.tell(0.0, ev.SUBMITTED, range(50), JobSpec())
    shadow.tick(0.0)
    assert shadow.deferred == list(range(50))
    shadow.tell(10.0, leave, range(1, 50), extra)
    shadow.tick(10.0)
    assert shadow.deferred == [0], "a later pass would meet all the others at once"
    assert shadow.runner.queue.next_due_s() == EPOCH_S


def test_a_job_that_comes_back_is_due_by_its_new_place_alone() -> None:
    shadow = Shadow(Defers)
    shadow.tell(0.0, ev.SUBMITTED, [0, 1], JobSpec())
    shadow.tick(0.0)
    shadow.tell(5.0, ev.HELD, [0], None)
    shadow.tell(7.0, ev.RELEASED, [0], None)
    shadow.tick(7.0)
    assert shadow.deferred == [1, 0]
    shadow.tick(EPOCH_S)
    assert shadow.deferred == [0, 1], "the second is deferred anew, the first not yet due"
    assert shadow.runner.queue.next_due_s() == 7.0 + EPOCH_S


def test_a_shorter_epoch_holds_for_jobs_deferred_before_the_restart_too() -> None:
    before, after = Shadow(Defers), Shadow(Defers, reconsider_s=600.0)
    before.tell(0.0, ev.SUBMITTED, [0], JobSpec())
    before.tick(0.0)
    after.engine.restore(before.engine.save())
    after.tell(100.0, ev.SUBMITTED, [1], JobSpec())
    after.tick(100.0)
    assert after.runner.queue.next_due_s() == 600.0
    after.tick(700.0)
    assert after.deferred == [0, 1], "the first does not hold up the second"
    assert after.runner.queue.next_due_s() == 1300.0


def test_an_older_snapshot_with_jobs_that_left_is_read() -> None:
    queue, other = PendingQueue(), PendingQueue()
    for number in (1, 2):
        queue.enter(number)
        queue.defer(number, queue.waiting[number], 60.0)
    del queue.waiting[1]
    other.restore(queue.save(), [])
    assert [job for _, job, _ in unpack(other.save()["deferred"])] == [2]
    del queue.waiting[2]
    other.restore(queue.save(), [])
    assert other.next_due_s() == NEVER
