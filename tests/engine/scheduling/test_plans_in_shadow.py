"""Plans in shadow: the journal records each once, however often it is planned again."""

import random
from collections.abc import Iterator

from outrider.api import PREEMPT, START, Move, Plans, Policy, Queue, SiteView
from outrider.model.decisions import DEFER
from outrider.testing.hand_campus import HOUR_S, Work, make_campus
from tests.fixtures.plays import MAKERS, Play


class Grudging(Plans, Policy):
    """Policy that would preempt the job on the hour's machine for the first of the queue."""

    name = "grudging"
    description = "for tests: the next one instead of the one that runs"

    def __init__(self) -> None:
        super().__init__(self.settings_type(), random.Random(0))

    def plan(self, queue: Queue, view: SiteView) -> Iterator[Move]:
        """The same in every pass, but for the machine, which is another one from second 25 on."""
        machine = int(view.now >= 25.0)
        for job in list(view.running_on(machine)):
            yield Move(PREEMPT, job.number, machine, 0, "not you")
        for job in queue.jobs[:1]:
            yield Move(START, job.number, machine, job.spec.cpus, "you")


def test_a_wish_is_told_once_and_again_only_when_it_is_for_another_kind_of_machine() -> None:
    """Two machines of two groups; two jobs fill them, and the third waits while others come."""
    jobs = [Work(float(t), 2 * HOUR_S) for t in (0, 0, 10, 20, 30, 40)]
    play = Play(make_campus([0, 1], jobs, end_s=HOUR_S), [MAKERS["fifo"](), Grudging()], 60.0)
    told = [(row.time_s, row.job, row.action, row.machine) for row in play.of("grudging")]
    assert told == [
        (0.0, "j0", START, "m0"),
        (0.0, "j1", DEFER, None),
        (10.0, "j2", START, "m0"),  # and that j0 should go, which concerns a run, is not told
        (20.0, "j3", DEFER, None),
        (30.0, "j2", START, "m1"),
        (30.0, "j4", DEFER, None),
        (40.0, "j5", DEFER, None),
    ]
    assert (play.runners[1].starts, sum(play.runners[1].moves.values())) == (3, 0)
