"""Equation 4's second and third case: was it right to keep a job queued?"""

import random

import pytest

from deciding.campuses import DAY_S, HOUR_S, Rules, Session, Work, make_campus
from deciding.plays import Play, bandit
from learning.views import HandView, outcome, waiting_job
from outrider.api import EVICTED_RUN, NOWHERE
from outrider.model import events as ev
from outrider_policies.bandit import Bandit
from outrider_policies.learners.left_alone import LeftAlone


def kept(policy: Bandit, view: HandView, at_s: float) -> None:
    """Ask while no cluster is open: nothing but the queue can be chosen."""
    view.now, free = at_s, view.free_n
    view.free_n = [0] * len(free)
    job = waiting_job()
    row = policy.appraise(policy.alike(job, view), view)
    assert policy.choose(job, row, view, True).machine == NOWHERE
    view.free_n = free


@pytest.mark.parametrize("taken_by", [ev.OWNER_CAME, ev.REBOOTED, ev.DRAINED, ev.LEFT])
@pytest.mark.parametrize(("run_s", "reward"), [(3999.0, -1.0), (4000.0, -1.0), (4001.0, 1.0)])
def test_what_would_have_ended_the_run_decides_not_what_jobs_came_later(
    taken_by: int, run_s: float, reward: float
) -> None:
    """The site saw no machine that stayed free: the one at hand was given other jobs."""
    policy, view = bandit(), HandView([1], [50.0])
    policy.notice(ev.USABLE, 0, view)
    kept(policy, view, 1000.0)
    view.now = 5000.0
    policy.notice(taken_by, 0, view)
    view.now = 20_000.0
    assert policy.observe(outcome(0, run_s=run_s), view, True) == [1.0, reward]


def test_a_machine_still_left_alone_counts_up_to_now() -> None:
    policy, view = bandit(), HandView([1], [50.0])
    policy.notice(ev.JOINED, 0, view)
    kept(policy, view, 1000.0)
    view.now = 3000.0
    assert policy.observe(outcome(0, run_s=2000.0), view, True) == [1.0, -1.0]


def test_a_machine_that_was_opened_after_the_decision_does_not_count() -> None:
    policy, view = bandit(), HandView([1], [50.0])
    kept(policy, view, 1000.0)
    view.now = 1500.0
    policy.notice(ev.USABLE, 0, view)
    view.now = 9000.0
    assert policy.observe(outcome(0, run_s=2000.0), view, True) == [1.0, 1.0]


def test_what_was_seen_of_machines_survives_a_restart() -> None:
    policy, view = bandit(), HandView([1, 1], [50.0] * 2)
    policy.notice(ev.USABLE, 0, view)
    policy.notice(ev.USABLE, 100, view)
    kept(policy, view, 1000.0)
    view.now = 4000.0
    policy.notice(ev.OWNER_CAME, 0, view)
    again = bandit()
    again.restore(policy.save(view), view)
    for one in (policy, again):
        view.now = 6000.0
        one.notice(ev.OWNER_CAME, 100, view)
        assert one.observe(outcome(0, run_s=4500.0), view, True) == [1.0, -1.0]


@pytest.mark.parametrize("seed", range(20))
def test_how_long_the_luckiest_machine_was_left_alone_is_what_a_search_of_all_says(
    seed: int,
) -> None:
    rng, view, seen = random.Random(seed), HandView([1] * 5, [50.0] * 5), LeftAlone()
    opened: dict[int, float] = {}
    stretches: list[tuple[float, float]] = []
    for _ in range(200):
        view.now += rng.choice([0.0, 1.0, 7.0])
        machine = rng.randrange(5) * 100
        if machine in opened:
            stretches.append((opened.pop(machine), view.now))
            seen.notice(ev.OWNER_CAME, machine, view)
        else:
            opened[machine] = view.now
            seen.notice(ev.USABLE, machine, view)
        start = rng.uniform(0.0, view.now)
        end = start + rng.choice([1.0, 5.0, 20.0, 60.0])
        known = [*stretches, *((since, view.now) for since in opened.values())]
        expected = any(since <= start and end <= until for since, until in known)
        assert seen.lasted(start, end, view.now) == expected, (start, end)


@pytest.mark.parametrize(("reboot_h", "reward"), [(3.0, 1.0), (5.0, -1.0)])
def test_in_a_run_a_keep_is_judged_by_owners_and_reboots(reboot_h: float, reward: float) -> None:
    """At 2 h c0 has disappointed and c1 has an owner: the queue, untried, is the best."""
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
        ("keep", 2 * HOUR_S),
        ("start", 3 * HOUR_S),
    ]
    assert policy.scores(state, play.site)["queue"] == reward
