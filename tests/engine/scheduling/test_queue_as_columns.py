"""Queue columns for a ranking policy, and its notifications of jobs that are declared again."""

from math import isnan, nan
from random import Random
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from outrider.api import (
    NOWHERE,
    RUNNING,
    SUSPENDED_STATE,
    Job,
    JobSpec,
    Orders,
    Policy,
    Queue,
    Ranks,
    Resources,
    SiteView,
)
from outrider.engine.scheduling.pending_queue import QueueColumns
from outrider.model import events as ev
from outrider.model.errors import PolicyError
from outrider.testing.fixtures import HandSite


class Watching(Orders, Ranks, Policy):
    """The narrowest first; writes down what it hears and sees."""

    name = "watching"
    description = "for tests"
    fails = False

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self.heard: list[tuple[str, int]] = []
        self.seen: list[tuple[list[int], list[float], list[float]]] = []

    def order(self, job: Job, view: SiteView) -> float:
        if self.fails:
            raise ZeroDivisionError("no order")
        return job.spec.cpus / 2

    def rank(self, queue: Queue, view: SiteView) -> NDArray[np.float64]:
        numbers = [job.number for job in queue.jobs]
        self.seen.append((numbers, queue.submit_s.tolist(), queue.order.tolist()))
        return queue.order

    def on_enqueue(self, job: Job, view: SiteView) -> None:
        self.heard.append(("in", job.number))

    def on_dequeue(self, job: Job, view: SiteView) -> None:
        self.heard.append(("out", job.number))


def waiting() -> HandSite:
    """Jobs 0 to 2 wait, submitted at seconds 0 to 2, for one CPU that job 9 has."""
    hand = HandSite(Watching)
    hand.machines(1)
    hand.submit(9)
    hand.tick()
    for job in range(3):
        hand.submit(job, cpus=1, vo=f"vo{job}")
        hand.tick(1.0)
    hand.policy.heard.clear()
    return hand


def test_a_job_that_is_declared_anew_keeps_its_place_and_is_ordered_anew() -> None:
    hand = waiting()
    hand.tell(ev.CHANGED, 1, JobSpec(cpus=1, vo="other", estimate_s=60.0, job_class="interactive"))
    assert hand.policy.heard == [("out", 1), ("in", 1)]
    table: Any = hand.runner.scheduling_pass
    queue = table.table
    assert [job.number for job in queue.jobs] == [0, 1, 2]
    assert queue.submit_s.tolist() == [0.0, 1.0, 2.0]
    assert [queue.vo_names[vo] for vo in queue.vo] == ["vo0", "other", "vo2"]
    assert isnan(queue.estimate_s[0])
    assert queue.estimate_s[1] == 60.0
    assert queue.interactive.tolist() == [False, True, False]
    hand.complete(9)
    assert hand.tick(1.0) == [0]


def test_a_policy_that_fails_at_it_is_asked_no_more() -> None:
    hand = waiting()
    hand.runner.strict = False
    hand.policy.fails = True
    hand.tell(ev.CHANGED, 1, JobSpec(cpus=1))
    assert 'policy "watching" failed' in hand.runner.broken
    assert "no order" in hand.runner.broken
    hand.tell(ev.REMOVED, 1, "user")
    hand.tell(ev.CHANGED, 2, JobSpec(cpus=1))
    assert not hand.runner.queue.waiting


def test_a_policy_that_fails_at_a_job_that_leaves_is_asked_no_more() -> None:
    hand = waiting()
    hand.runner.strict = False

    def fail(*told: Any) -> None:
        raise LookupError("who was it")

    hand.policy.on_dequeue = fail
    hand.tell(ev.REMOVED, 1, "user")
    assert "who was it" in hand.runner.broken
    assert set(hand.site.jobs) == {0, 2, 9}


@pytest.mark.parametrize("wrong", [0.0, [0.0], [0.0, 1.0, 2.0, 3.0], [[0.0], [1.0], [2.0]]])
def test_an_order_that_is_not_of_all_who_wait_is_refused(wrong: Any) -> None:
    hand = waiting()
    hand.policy.rank = lambda queue, view: wrong
    hand.complete(9)
    with pytest.raises(PolicyError, match=r"rank returned an array of shape .*expected \(3,"):
        hand.tick(1.0)


def job(number: int, **spec: Any) -> Job:
    return Job(number, JobSpec(**spec), float(number))


def test_rows_move_up_where_one_leaves_and_grow_beyond_their_first_room() -> None:
    queue = QueueColumns()
    for n in range(130):
        queue.add(job(n, cpus=n + 1), 10 * n, 0.0, -float(n))
    assert (queue.remove(5), queue.at(5)) == (None, None)
    assert queue.remove(0) is not None
    gone = queue.remove(640)
    assert gone is not None
    assert gone.number == 64
    left = [n for n in range(130) if n not in (0, 64)]
    assert [one.number for one in queue.jobs] == left
    assert queue.cpus.tolist() == [n + 1 for n in left]
    assert queue.order.tolist() == [-float(n) for n in left]
    assert [queue.stamp(row) for row in (0, 62, 63, 127)] == [10, 630, 650, 1290]
    found = queue.at(1290)
    assert found is not None
    assert found.number == 129
    queue.change(job(129, cpus=4), 1290, 7.5)
    queue.change(job(64, cpus=4), 640, 9.0)
    assert (queue.cpus[-1], queue.order[-1], queue.submit_s[-1]) == (4, 7.5, 129.0)
    assert len(queue) == 128


def test_rows_are_those_of_the_jobs_however_they_come_and_go_and_their_room_stays_small() -> None:
    queue, waiting, chance = QueueColumns(), list[int](), Random(5)
    for n in range(3000):
        if len(waiting) < 70 and (not waiting or chance.random() < 0.52):
            queue.add(job(n, cpus=n + 1, estimate_s=n / 2), n, 0.0, -float(n))
            waiting.append(n)
        else:
            row = 0 if chance.random() < 0.7 else chance.randrange(len(waiting))
            gone = queue.remove(waiting.pop(row))
            assert gone is not None
        assert [one.number for one in queue.jobs] == waiting
        assert queue.cpus.tolist() == [n + 1 for n in waiting]
        assert queue.estimate_s.tolist() == [n / 2 for n in waiting]
        whole = queue.cpus.base
        assert whole is not None
        assert whole.size <= 5 * 2 * 70


def test_a_job_whose_submission_is_not_known_counts_from_when_it_got_in_line() -> None:
    queue = QueueColumns()
    queue.add(Job(0, JobSpec(), None), 1, 50.0, nan)
    assert queue.submit_s.tolist() == [50.0]
    restored = QueueColumns()
    restored.restore(queue.save(), {0: Job(0, JobSpec(vo="all"), None)})
    assert restored.submit_s.tolist() == [50.0]
    assert restored.vo_names == queue.vo_names


def preempted(number: int) -> Job:
    """Return a job of two CPUs that ran for 60 s, the last 20 s on one CPU."""
    one = job(number, cpus=2)
    one.state, one.machine, one.start_s, one.cpus = RUNNING, 3, 100.0, 2
    one.count_cpus(140.0)
    one.cpus = 1
    one.state, one.suspended_at_s, one.gave_back = SUSPENDED_STATE, 160.0, True
    return one


def test_a_preempted_job_has_the_work_it_has_done_and_its_machine_for_ever() -> None:
    queue = QueueColumns()
    queue.add(job(0), 1, 0.0, nan)
    queue.add(preempted(1), 2, 160.0, nan)
    assert queue.work_s.tolist() == [0.0, 50.0]
    assert queue.home.tolist() == [NOWHERE, 3]
    restored = QueueColumns()
    restored.restore(queue.save(), dict(enumerate(queue.jobs)))
    assert (restored.work_s.tolist(), restored.home.tolist()) == ([0.0, 50.0], [NOWHERE, 3])
    assert queue.jobs[1].work_s(1e9) == 50.0, "time that passes does no work"
    queue.remove(1)
    queue.add(job(2), 3, 170.0, nan)
    assert (queue.work_s.tolist(), queue.home.tolist()) == ([50.0, 0.0], [3, NOWHERE])


def test_a_job_is_bound_by_its_class_of_machines_or_other_resources_not_by_its_cpus() -> None:
    queue = QueueColumns()
    specs: list[dict[str, Any]] = [
        {},
        {"cpus": 8},
        {"eligible": "A"},
        {"cpus": 8, "resources": Resources(gpus=1.0)},
    ]
    for number, spec in enumerate(specs):
        queue.add(job(number, **spec), number, 0.0, nan)
    assert queue.bound.tolist() == [False, False, True, True]
    queue.change(job(2), 2, nan)
    assert queue.bound.tolist() == [False, False, False, True]
