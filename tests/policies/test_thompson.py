"""Thompson sampling on the bandit's arms: beliefs, samples that hold, and learning."""

from collections import Counter
from statistics import fmean
from typing import Any

import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, NOWHERE
from outrider.testing.fixtures import chance
from outrider_policies.bandits.thompson import Thompson, ThompsonSettings
from tests.policies.views import HandView, outcome, waiting_job


def thompson(seed: int = 0, **settings: Any) -> Thompson:
    return Thompson(ThompsonSettings(**settings), chance("thompson", seed))


def choose(policy: Thompson, view: HandView, may_defer: bool = True) -> int:
    job = waiting_job()
    row = policy.evaluate_group(policy.group_key(job, view), view)
    return policy.choose(job, row, view, may_defer).machine


def test_before_anything_is_known_all_arms_are_taken_alike() -> None:
    policy, view = thompson(resample_s=0.0), HandView([1] * 3, [50.0] * 3)
    drawn = Counter(choose(policy, view) for _ in range(4000))
    assert set(drawn) == {0, 100, 200, NOWHERE}
    assert all(n == pytest.approx(1000, abs=130) for n in drawn.values()), drawn


def test_samples_of_an_arm_have_the_mean_of_its_beta_belief() -> None:
    """Three completions and one eviction, sigma 0: Beta(4, 2)."""
    policy, view = thompson(resample_s=0.0, sigma=0.0), HandView([1], [50.0])
    for ending in (COMPLETED_RUN, COMPLETED_RUN, COMPLETED_RUN, EVICTED_RUN):
        policy.observe(outcome(0, ending), view, True)
    held: list[float] = []
    for _ in range(4000):
        samples: dict[int, float] = {}
        policy.select((0, policy.rows[0], samples), policy.level, view, False)
        held.append(samples[0])
    assert fmean(held) == pytest.approx(4 / 6, abs=0.01)


def test_samples_hold_for_the_time_that_is_set() -> None:
    policy, view = thompson(resample_s=3600.0), HandView([1] * 20, [50.0] * 20)
    first = {choose(policy, view) for _ in range(50)}
    assert len(first) == 1
    view.now = 3599.0  # the same hour of day, the same sample
    assert {choose(policy, view)} == first
    later = set()
    for day in range(1, 8):
        view.now = day * 86_400.0
        later.add(choose(policy, view))
    assert len(later) > 1


def test_it_settles_on_the_cluster_that_lets_jobs_finish() -> None:
    policy, view = thompson(resample_s=0.0), HandView([1] * 4, [50.0] * 4)
    for n in range(400):
        machine = choose(policy, view, may_defer=False)
        good = machine == 200 or n % 3 == 0
        ended = COMPLETED_RUN if good else EVICTED_RUN
        policy.observe(outcome(machine // 100, ended), view, True)
    late = Counter(choose(policy, view, may_defer=False) for _ in range(200))
    assert late[200] > 150, late


def test_samples_that_hold_survive_a_restart() -> None:
    policy, view = thompson(), HandView([1] * 20, [50.0] * 20)
    before = choose(policy, view)
    again = thompson(seed=5)
    again.restore(policy.save(view), view)
    assert choose(again, view) == before
