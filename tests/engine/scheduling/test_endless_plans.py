"""A policy whose moves bring about the next pass must come to rest: the moment has to end."""

import random
from collections.abc import Iterator

import pytest

from outrider.api import SHRINK, START, Move, Plans, Policy, Queue, SiteView
from outrider.engine.scheduling.queue_passes import MAX_PLANS
from outrider.model.errors import PolicyError
from outrider.testing.fixtures import Asked, on_one_machine


class ToAndFro(Plans, Policy):
    """Policy that starts a job a pass, and from second 5 on changes job 0 by one CPU.

    That goes on for `times` passes, and for as long as somebody waits.
    """

    name = "to_and_fro"
    description = "for tests: hardly comes to rest"

    def __init__(self, times: int) -> None:
        super().__init__(self.settings_type(), random.Random(0))
        self._times = times

    def plan(self, queue: Queue, view: SiteView) -> Iterator[Move]:
        """Every shrink brings about another pass."""
        if view.now >= 5.0 and (self._times or len(queue.jobs) > 1):
            self._times = max(0, self._times - 1)
            for job in list(view.running_on(0)):
                if job.number == 0:
                    yield Move(SHRINK, 0, 0, 3 - job.cpus, "to and fro")
        for job in queue.jobs[:1]:
            yield Move(START, job.number, 0, job.spec.cpus, "next")


WORK = (Asked(0.0, 100.0, 2), Asked(5.0, 1.0))


def test_a_policy_that_moves_runs_to_and_fro_for_ever_is_stopped_by_name_and_time() -> None:
    with pytest.raises(PolicyError, match=r'"to_and_fro".* plans at 5 s moved runs and started'):
        on_one_machine(ToAndFro(10 * MAX_PLANS), 3, *WORK)


def test_one_that_comes_to_rest_in_time_is_not() -> None:
    done = on_one_machine(ToAndFro(MAX_PLANS), 3, *WORK)
    assert len(done.did(0, SHRINK)) == MAX_PLANS
    assert done.ended(0) == pytest.approx(100.0), "no time passed between to and fro"


def test_rounds_that_start_somebody_end_by_themselves_however_many_there_are() -> None:
    many = [Asked(5.0, 1.0) for _ in range(MAX_PLANS + 100)]
    done = on_one_machine(ToAndFro(0), 2 + len(many), WORK[0], *many)
    assert {done.did(1 + number, START)[0][0] for number in range(len(many))} == {5.0}
