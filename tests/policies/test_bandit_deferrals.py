"""Equation 4's second and third case: was it right to defer a job?"""

import pytest

from outrider.api import EVICTED_RUN, NOWHERE
from outrider.testing.hand_campus import DAY_S, HOUR_S, Rules, Session, Work, make_campus
from outrider_policies.bandits.bandit import Bandit
from tests.fixtures.plays import Play, bandit
from tests.policies.views import HandView, outcome, waiting_job


def deferred(policy: Bandit, view: HandView, at_s: float) -> None:
    """Ask while no cluster is open: nothing but the queue can be chosen."""
    view.now, free = at_s, view.free_n
    view.free_n = [0] * len(free)
    job = waiting_job()
    row = policy.evaluate_group(policy.group_key(job, view), view)
    assert policy.choose(job, row, view, True).machine == NOWHERE
    view.free_n = free


@pytest.mark.parametrize(("run_s", "reward"), [(3999.0, -1.0), (4000.0, -1.0), (4001.0, 1.0)])
def test_a_deferral_was_wrong_if_a_machine_was_available_long_enough(
    run_s: float, reward: float
) -> None:
    policy, view = bandit(), HandView([1], [50.0])
    view.stays = [(500.0, 5000.0)]
    deferred(policy, view, 1000.0)
    view.now = 20_000.0
    assert policy.observe(outcome(0, run_s=run_s), view, True) == [1.0, reward]


def test_deferrals_not_yet_judged_survive_a_restart() -> None:
    policy, view = bandit(), HandView([1, 1], [50.0] * 2)
    deferred(policy, view, 1000.0)
    again = bandit()
    again.restore(policy.save(view), view)
    view.stays = [(500.0, 6000.0)]
    for one in (policy, again):
        view.now = 6000.0
        assert one.observe(outcome(0, run_s=4500.0), view, True) == [1.0, -1.0]


@pytest.mark.parametrize(("reboot_h", "reward"), [(3.0, 1.0), (5.0, -1.0)])
def test_in_a_run_a_deferral_is_judged_by_owners_and_reboots(
    reboot_h: float, reward: float
) -> None:
    """Check that at 2 h, c0 poor and c1 with an owner, the untried queue is the best."""
    sessions = [Session(1, 0.0, 2.5 * HOUR_S)]
    rules = Rules(reboot_s=reboot_h * HOUR_S)
    jobs = [Work(2 * HOUR_S, 2 * HOUR_S)]
    campus = make_campus([0, 1], jobs, sessions, rules, watts=[50.0, 50.0], end_s=DAY_S)
    policy = bandit(epsilon=0.0)
    view = HandView([1, 1, 1], [50.0] * 3)
    state = 2 * 24
    policy.observe(outcome(0, EVICTED_RUN, key=state), view, True)
    policy.observe(outcome(1, key=state), view, True)
    play = Play(campus, [policy])
    assert [(row.action, row.time_s) for row in play.rows] == [
        ("defer", 2 * HOUR_S),
        ("start", 3 * HOUR_S),
    ]
    assert policy.scores(state, play.site)["queue"] == reward
