"""Equation 6: what is chosen how often, and what it says of its own chance."""

from collections import Counter
from itertools import product

import pytest

from outrider.api import NOWHERE
from outrider_policies.bandits.bandit import Bandit
from tests.fixtures.plays import bandit
from tests.policies.views import HandView, outcome, waiting_job

DRAWS = 6000


def taught(epsilon: float, best: tuple[int, ...]) -> tuple[Bandit, HandView]:
    """A bandit for which some clusters have proved good, the others bad."""
    policy, view = bandit(epsilon=epsilon, sigma=0.0), HandView([1] * 4, [50.0] * 4)
    for cluster in range(4):
        policy.observe(outcome(cluster, "completed" if cluster in best else "evicted"), view, True)
    return policy, view


def draws(policy: Bandit, view: HandView, may_defer: bool) -> tuple[Counter[int], dict[int, float]]:
    """Return how often each arm was chosen (-1: the queue), and the propensity it named."""
    counts: Counter[int] = Counter()
    named: dict[int, float] = {}
    job = waiting_job()
    for _ in range(DRAWS):
        row = policy.evaluate_group(policy.group_key(job, view), view)
        choice = policy.choose(job, row, view, may_defer)
        arm = NOWHERE if choice.machine == NOWHERE else choice.machine // 100
        counts[arm] += 1
        assert choice.propensity is not None
        assert named.setdefault(arm, choice.propensity) == choice.propensity
    return counts, named


@pytest.mark.parametrize(
    ("epsilon", "best", "may_defer"),
    list(product((0.1, 0.5, 1.0), ((0,), (1, 2), ()), (True, False))),
)
def test_propensities_sum_to_one_and_are_the_frequencies(
    epsilon: float, best: tuple[int, ...], may_defer: bool
) -> None:
    policy, view = taught(epsilon, best)
    counts, named = draws(policy, view, may_defer)
    assert len(named) == 4 + may_defer
    assert sum(named.values()) == pytest.approx(1.0)
    for arm, propensity in named.items():
        spread = (propensity * (1 - propensity) / DRAWS) ** 0.5
        assert abs(counts[arm] / DRAWS - propensity) <= 4.5 * spread + 1e-9, arm


def test_full_clusters_are_never_chosen_however_good() -> None:
    policy, view = taught(0.5, (2,))
    view.free_n = [1, 0, 0, 3]
    counts, named = draws(policy, view, True)
    assert set(counts) == {NOWHERE, 0, 3}
    assert sum(named.values()) == pytest.approx(1.0)


def test_an_untried_cluster_is_better_than_those_that_only_disappointed() -> None:
    policy, view = bandit(epsilon=0.0), HandView([1, 1, 1], [50.0] * 3)
    for cluster in (0, 1):
        policy.observe(outcome(cluster, "evicted"), view, True)
    counts, _ = draws(policy, view, False)
    assert set(counts) == {2}


def test_a_job_that_must_start_is_never_kept() -> None:
    policy, view = bandit(epsilon=1.0), HandView([1], [50.0])
    assert set(draws(policy, view, False)[0]) == {0}


def test_scores_and_propensity_are_left_out_where_nobody_reads_them() -> None:
    policy, view = taught(0.0, (1,))
    job = waiting_job()
    row = policy.evaluate_group(0, view)
    policy.wants_scores = False
    choice = policy.choose(job, row, view, True)
    assert (choice.machine, choice.propensity, choice.scores) == (100, None, None)
    policy.wants_scores = True
    scores = policy.choose(job, row, view, True).scores
    assert scores is not None
    assert scores["queue"] == 0.0
    assert scores["c1"] == 1.0


def test_clusters_are_found_again_by_name_after_a_restart() -> None:
    policy, view = taught(0.0, (1,))
    saved = policy.save(view)
    other = HandView([1] * 5, [50.0] * 5)
    other.cluster_names = ["c3", "new", "c2", "c1", "c0"]
    again = bandit(epsilon=0.0)
    again.restore(saved, other)
    assert again.scores(0, other) == {
        "queue": 0.0, "c3": -1.0, "new": 0.0, "c2": -1.0, "c1": 1.0, "c0": -1.0,
    }  # fmt: skip
