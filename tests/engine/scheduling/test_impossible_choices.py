"""Handling of a job whose policy chooses the impossible, may defer no longer, or fails."""

from typing import Any

import pytest

from outrider.api import NOWHERE, Choice, Job, Listens, Policy, SiteView
from outrider.model import events as ev
from outrider.model.machines import MachineSpec, Resources
from outrider.model.modes import Discipline
from outrider.testing.fixtures import HandSite


class Fixed(Listens, Policy):
    """Policy with fixed answers; by default machine 0 for every job."""

    name = "fixed"
    description = "for tests"
    api_version = 1
    subscribes = frozenset({ev.OWNER_CAME})
    answer: Any = Choice(0, "fixed")

    def __init__(self, *made: Any) -> None:
        super().__init__(*made)
        self.might_defer: list[bool] = []
        self.heard: list[tuple[int, int]] = []

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        self.might_defer.append(may_defer)
        answer: Choice = self.answer
        return answer

    def on_machine_event(self, kind: int, machine: int, view: SiteView) -> None:
        if machine == 13:
            raise LookupError("no such machine")
        self.heard.append((kind, machine))


def site(*cpus: int, discipline: Discipline = "first_fit", most_s: float = 1e9) -> HandSite:
    """Machines, and the policy, which is forgiven as in the daemon."""
    hand = HandSite(type("Fixed", (Fixed,), {"max_defer_s": most_s}), discipline)
    hand.runner.strict = False
    hand.machines(*cpus)
    return hand


def test_a_refused_choice_defers_its_job_as_long_as_may_be_and_then_it_starts_anywhere() -> None:
    hand = site(4, 4, most_s=5_000.0)
    hand.tell(ev.DRAINED, 0)
    hand.submit(0)
    assert (hand.tick(), hand.tick(3600.0)) == ([], [])
    assert hand.tick(1400.0) == [0]
    assert hand.starts == [(0, 1)]
    assert hand.policy.might_defer == [True, True, False]
    assert hand.runner.refused == {"closed": 3}
    assert [(row[0], row[2], row[5]) for row in hand.decision_log.rows] == [
        (0.0, "defer", "refused_closed"), (5000.0, "start", "guard"),
    ]  # fmt: skip


def test_a_place_that_is_promised_to_the_first_in_line_is_refused_to_the_others() -> None:
    hand = site(4, discipline="easy")
    hand.submit(0, cpus=3, estimate_s=100.0)
    assert hand.tick() == [0]
    hand.submit(1, cpus=4, estimate_s=100.0)
    hand.submit(2, cpus=1, estimate_s=500.0)
    assert hand.tick(1.0) == []
    assert hand.runner.refused == {}, "it is not even asked: there is no place for the job"
    hand.machines(1)
    assert hand.tick(1.0) == []
    assert hand.runner.refused == {"promised": 1}


def test_when_a_deferred_job_is_asked_about_again_is_known_to_the_second() -> None:
    hand = site(1, most_s=5_000.0)
    hand.policy.answer = Choice(NOWHERE, "hold")
    hand.submit(0)
    assert hand.runner.next_look_s(0) is None, "it was not decided yet"
    hand.tick()
    assert hand.runner.next_look_s(0) == 3600.0
    hand.tick(3600.0)
    assert hand.runner.next_look_s(0) == 5000.0
    assert hand.runner.next_look_s(77) is None
    hand.tick(1400.0)
    assert hand.starts == [(0, 0)]
    assert hand.runner.next_look_s(0) is None


def test_a_job_that_left_is_not_waited_for_any_more() -> None:
    hand = site(1, most_s=1_000.0)
    hand.policy.answer = Choice(NOWHERE, "hold")
    for job in (0, 1):
        hand.submit(job)
        hand.tick(10.0)
    queue = hand.runner.queue
    assert queue.next_due_s() == 1010.0
    hand.tell(ev.REMOVED, 0, "user")
    assert queue.next_due_s() == 1020.0
    hand.tell(ev.REMOVED, 1, "user")
    assert queue.next_due_s() == float("inf")


def test_who_listens_hears_of_its_kinds_of_events_until_it_fails() -> None:
    hand = site(*[1] * 14)
    hand.tell(ev.OWNER_CAME, 3)
    hand.tell(ev.DRAINED, 4)
    assert hand.policy.heard == [(ev.OWNER_CAME, 3)]
    hand.tell(ev.OWNER_CAME, 13)
    assert 'policy "fixed" failed: LookupError: no such machine' in hand.runner.broken
    hand.tell(ev.OWNER_CAME, 5)
    assert hand.policy.heard == [(ev.OWNER_CAME, 3)], "it is told no more"
    assert hand.site.owner[5], "the site knows"


@pytest.mark.parametrize(
    ("error", "broken"), [(ValueError("5 levels"), ""), (KeyError("x"), "failed: KeyError: 'x'")]
)
def test_what_was_learned_and_does_not_fit_costs_no_job(error: Exception, broken: str) -> None:
    hand = site(1)
    hand.submit(0)
    saved = hand.engine.save()
    fresh = site()

    def restore(*given: Any) -> None:
        raise error

    fresh.policy.restore = restore
    assert fresh.engine.restore(saved) == ["fixed"]
    assert broken in fresh.runner.broken
    assert list(fresh.site.jobs) == [0]
    assert (list(fresh.runner.queue.waiting) == [0]) == (not broken)


def test_a_resumed_job_takes_its_memory_again() -> None:
    hand = site()
    hand.tell(ev.JOINED, 0, MachineSpec(cpus=2, resources=Resources(memory_mib=1000)))
    hand.submit(0, resources=Resources(memory_mib=600))
    assert hand.tick() == [0]
    hand.tell(ev.SUSPENDED, 0, ev.CPUS_GIVEN_BACK)
    assert hand.site.resources_left(0) == {"memory_mib": 1000.0}
    hand.tell(ev.RESUMED, 0, (0, 1))
    assert hand.site.resources_left(0) == {"memory_mib": 400.0}
