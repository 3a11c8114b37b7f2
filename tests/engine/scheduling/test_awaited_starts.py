"""Machines with a decided start are not given away until the batch system has made it."""

import pytest

from outrider.engine import Engine
from outrider.engine.scheduling.policy_runner import PolicyRunner, restore_runner, save_runner
from outrider.engine.scheduling.scheduling_pass import MAX_AWAIT_S
from outrider.model import events as ev
from outrider.model.decisions import START
from outrider.model.jobs import JobSpec
from outrider.model.modes import EASY, FIRST_FIT, Discipline
from outrider.testing.fixtures import HandSite
from outrider_policies.rules.orders import ShortestJobFirst
from outrider_policies.rules.placements import Fifo


class Beside(HandSite):
    """Site whose batch system makes no start until the test makes it."""

    def __init__(self, kind: type = Fifo, discipline: Discipline = FIRST_FIT) -> None:
        super().__init__(kind, discipline)
        self.runner = PolicyRunner(self.policy, False, 600.0, strict=True, discipline=discipline)
        self.runner.awaits_starts = True
        self.engine = Engine(
            self.site, self.engine.accounting, [self.runner], self, self.decision_log
        )

    def decided(self) -> list[int]:
        """The jobs whose start was decided, in order."""
        return [row[1] for row in self.decision_log.rows if START in row]

    def later(self, seconds: float) -> list[int]:
        """Time passes; the jobs whose start was decided by then."""
        self.now += seconds
        self.tell(ev.TICK, 0)
        return self.decided()


@pytest.mark.parametrize(
    ("kind", "discipline"),
    [(Fifo, FIRST_FIT), (ShortestJobFirst, FIRST_FIT), (ShortestJobFirst, EASY)],
    ids=["per job", "ordered", "ranking"],
)
def test_no_second_job_gets_the_machine_until_the_first_has_begun_and_ended(
    kind: type, discipline: Discipline
) -> None:
    site = Beside(kind, discipline)
    site.machines(1)
    for job in range(3):
        site.submit(job, estimate_s=600.0 * (3 - job) if kind is ShortestJobFirst else 600.0)
    first, second = (2, 1) if kind is ShortestJobFirst else (0, 1)
    assert site.later(1.0) == [first]
    assert site.later(5.0) == [first], "the machine looks free, and is promised"
    site.tell(ev.STARTED, first, (0, 1))
    assert site.later(5.0) == [first]
    site.complete(first)
    assert site.later(1.0) == [first, second]


def test_a_free_machine_beside_it_is_given_at_once() -> None:
    site = Beside()
    site.machines(1)
    site.submit(0)
    assert site.later(1.0) == [0]
    site.machines(1)
    site.submit(1)
    assert site.later(1.0) == [0, 1]


def test_a_job_that_leaves_without_beginning_gives_the_machine_back() -> None:
    site = Beside()
    site.machines(1)
    site.submit(0)
    site.submit(1)
    assert site.later(1.0) == [0]
    site.tell(ev.REMOVED, 0, "removed")
    assert site.later(1.0) == [0, 1]


def test_a_start_that_is_not_made_is_not_awaited_for_ever() -> None:
    site = Beside()
    site.machines(1)
    site.submit(0)
    site.submit(1)
    assert site.later(1.0) == [0]
    assert site.later(MAX_AWAIT_S - 2.0) == [0]
    assert site.later(2.0) == [0, 1]


def test_a_machine_that_somebody_else_took_is_not_reserved_twice() -> None:
    site = Beside()
    site.machines(1)
    site.submit(0)
    assert site.later(1.0) == [0]
    site.tell(ev.SUBMITTED, 7, JobSpec())
    site.tell(ev.STARTED, 7, (0, 1))
    site.later(1.0)
    site.complete(7)
    site.submit(1)
    assert site.later(1.0) == [0, 1], "the batch system chose otherwise: the start is forgotten"


def test_what_is_awaited_outlives_a_restart() -> None:
    site = Beside()
    site.machines(1)
    site.submit(0)
    site.submit(1)
    assert site.later(1.0) == [0]
    saved = save_runner(site.runner, site.site)
    site.runner.scheduling_pass.awaited.jobs.clear()
    assert restore_runner(site.runner, saved, [0], site.site)
    assert site.later(5.0) == [0]


def test_in_shadow_nothing_is_awaited() -> None:
    """Each decision there is about a machine that is free, as if it alone were made."""
    site = Beside()
    site.runner.awaits_starts = False
    site.machines(1)
    site.submit(0)
    site.submit(1)
    assert site.later(1.0) == [0]
    assert site.later(1.0) == [0, 1]
