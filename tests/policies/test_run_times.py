"""Run time estimators: what they say, that it holds, and that nothing later is in it."""

import json
import random
from collections.abc import Callable
from math import exp, isnan, log, nan

import numpy as np
import pytest
from msgspec.structs import replace

from outrider.api import Job, JobSpec, PolicySettings, RunTimeEstimate, RunTimeEstimator
from outrider_policies.estimators import LastTwoRunTimes, LearnedRunTimes, UserRunTimes
from outrider_policies.estimators.baselines import MAX_USERS
from outrider_policies.estimators.context_histograms import ContextHistograms, Level
from outrider_policies.estimators.learned import LearnedSettings, QuantileLevels

Draw = Callable[[random.Random, int], tuple[JobSpec, float]]


def learned(contexts: int = 4096) -> LearnedRunTimes:
    return LearnedRunTimes(LearnedSettings(contexts=contexts), random.Random(1))


def submitted(estimator: RunTimeEstimator, spec: JobSpec) -> tuple[JobSpec, RunTimeEstimate | None]:
    """The specification as the engine keeps it, and what was said."""
    said = estimator.estimate(spec, 0.0)
    return (spec if said is None else replace(spec, estimate_s=said.median_s)), said


def median_of(estimator: RunTimeEstimator, spec: JobSpec) -> float:
    """The median; nan for no opinion."""
    said = estimator.estimate(spec, 0.0)
    return nan if said is None else said.median_s


def live(
    estimator: RunTimeEstimator, jobs: int, draw: Draw, running: int = 5, seed: int = 3
) -> list[tuple[float, RunTimeEstimate]]:
    """Jobs come one by one, each ends when `running` others have come: run time and estimate."""
    rng = random.Random(seed)
    open_jobs: list[tuple[JobSpec, float]] = []
    seen = []
    for number in range(jobs):
        spec, run_s = draw(rng, number)
        kept, said = submitted(estimator, spec)
        if said is not None:
            seen.append((run_s, said))
        open_jobs.append((kept, run_s))
        if len(open_jobs) > running:
            done, done_s = open_jobs.pop(0)
            estimator.learn(Job(number, done, 0.0), done_s, 0.0)
    return seen


def lognormal(median_s: float, sigma: float, user: str = "ada") -> Draw:
    return lambda rng, _: (JobSpec(user=user), exp(rng.gauss(log(median_s), sigma)))


def coverage(seen: list[tuple[float, RunTimeEstimate]]) -> float:
    return float(np.mean([said.low_s <= run_s <= said.high_s for run_s, said in seen]))


# -- learned ------------------------------------------------------------------------------------


def test_it_says_nothing_before_it_has_seen_a_few_jobs() -> None:
    estimator = learned()
    for number in range(10):
        assert estimator.estimate(JobSpec(user="ada", estimate_s=60.0), 0.0) is None, number
        estimator.learn(Job(number, JobSpec(user="ada"), 0.0), 30.0, 0.0)
    assert estimator.estimate(JobSpec(user="ada"), 0.0) is not None


def test_the_quantiles_of_a_known_distribution_are_found() -> None:
    seen = live(learned(), 3000, lognormal(600.0, 1.0))[1500:]
    middle = np.array([(log(s.low_s), log(s.median_s), log(s.high_s)) for _, s in seen]).mean(
        axis=0
    )
    right = log(600.0) + np.array([-1.2816, 0.0, 1.2816])
    assert np.abs(middle - right).max() < 0.15, np.exp(middle)


def test_eight_of_ten_run_times_lie_in_the_range() -> None:
    assert 0.77 < coverage(live(learned(), 3000, lognormal(600.0, 1.5))[500:]) < 0.83


def test_the_range_holds_again_soon_after_run_times_change() -> None:
    before, after = lognormal(300.0, 0.7), lognormal(6000.0, 0.7)
    seen = live(learned(), 2500, lambda rng, n: (before if n < 1500 else after)(rng, n))
    soon = seen[1700 - (2500 - len(seen)) :]  # two hundred jobs after the change
    assert 0.72 < coverage(soon) < 0.88, coverage(soon)
    medians = [said.median_s for _, said in soon]
    assert 3500.0 < float(np.median(medians)) < 9000.0, "the median has followed"


def test_users_are_told_apart_and_a_new_one_is_told_of_jobs_like_his() -> None:
    def draw(rng: random.Random, number: int) -> tuple[JobSpec, float]:
        user, median_s = (("ada", 60.0), ("bob", 7200.0))[number % 2]
        return JobSpec(user=user, estimate_s=10 * median_s), exp(rng.gauss(log(median_s), 0.3))

    estimator = learned()
    live(estimator, 1000, draw)
    assert 45.0 < median_of(estimator, JobSpec(user="ada", estimate_s=600.0)) < 80.0
    assert 5500.0 < median_of(estimator, JobSpec(user="bob", estimate_s=72000.0)) < 9500.0
    assert median_of(estimator, JobSpec(user="eve", estimate_s=72000.0)) > 3000.0


def test_what_its_user_asked_for_is_learned_from_although_the_estimate_stands_in_its_place() -> (
    None
):
    """The engine puts the estimate where the request was: the job comes back with that."""
    estimator = learned()
    requests = {600.0: 60.0, 36000.0: 9000.0}

    def draw(rng: random.Random, number: int) -> tuple[JobSpec, float]:
        asked_s = (600.0, 36000.0)[number % 2]
        return JobSpec(user=f"user-{number}", estimate_s=asked_s), requests[asked_s]

    live(estimator, 600, draw)
    for asked_s, run_s in requests.items():
        said_s = median_of(estimator, JobSpec(user="new", estimate_s=asked_s))
        assert 0.8 * run_s < said_s < 1.25 * run_s, (asked_s, said_s)


def test_the_three_quantiles_are_in_order_whatever_comes() -> None:
    def draw(rng: random.Random, number: int) -> tuple[JobSpec, float]:
        user, asked_s = rng.choice("abc"), rng.choice([None, 0.5, 3600.0, 1e9])
        return JobSpec(user=user, estimate_s=asked_s, cpus=rng.choice([1, 7, 4096])), rng.choice(
            [0.0, 0.01, 5.0, 1e5, 1e9]
        )

    for _, said in live(learned(), 1500, draw):
        assert 1.0 <= said.low_s <= said.median_s <= said.high_s <= 3.1e6, said


def test_nothing_that_comes_later_is_in_an_estimate() -> None:
    """Check that two histories that differ from job 500 on have equal estimates until then."""

    def told(other: Draw) -> list[RunTimeEstimate]:
        usual = lognormal(600.0, 1.0)
        seen = live(learned(), 700, lambda rng, n: (usual if n < 500 else other)(rng, n))
        return [said for _, said in seen]

    first, second = told(lognormal(5.0, 0.1)), told(lognormal(90000.0, 0.1))
    spoken_of = 500 - (700 - len(first))
    assert first[:spoken_of] == second[:spoken_of]
    assert first[-1] != second[-1], "and differ afterwards, or the test shows nothing"


def test_it_goes_on_identically_after_being_saved_and_restored() -> None:
    def draw(rng: random.Random, number: int) -> tuple[JobSpec, float]:
        user = rng.choice("abcdefgh")
        return JobSpec(user=user, vo=user, estimate_s=rng.choice([None, 600.0])), rng.expovariate(
            0.01
        )

    whole = learned(contexts=100)
    live(whole, 800, draw)
    waiting, _ = submitted(whole, JobSpec(user="a", estimate_s=600.0))
    again = learned(contexts=100)
    again.restore(json.loads(json.dumps(whole.save())))
    for estimator in (whole, again):
        estimator.learn(Job(1, waiting, 0.0), 77.0, 0.0)
    assert live(whole, 300, draw, seed=9) == live(again, 300, draw, seed=9)
    assert whole.save() == again.save()


def test_what_was_saved_with_other_levels_is_refused_and_nothing_changes() -> None:
    estimator = learned()
    live(estimator, 100, lognormal(600.0, 1.0))
    before = estimator.save()
    wrong = json.loads(json.dumps(before))
    wrong["histograms"]["levels"].pop()
    with pytest.raises(ValueError, match="9 levels; expected 96 on 10"):
        estimator.restore(wrong)
    assert estimator.save() == before


def test_it_remembers_no_more_contexts_than_it_may() -> None:
    estimator = learned(contexts=100)
    live(estimator, 1000, lambda rng, n: (JobSpec(user=f"user-{n}"), 60.0))
    assert {len(level) for level in estimator.save()["histograms"]["levels"]} <= {1, 100}


def test_jobs_alike_that_wait_together_are_each_remembered_until_they_end() -> None:
    estimator = learned()
    live(estimator, 100, lognormal(600.0, 0.5))
    spec = JobSpec(user="ada", estimate_s=7200.0)
    kept = [submitted(estimator, spec)[0] for _ in range(3)]
    assert kept[0] == kept[1] == kept[2]
    for left in (2, 1, 0):
        estimator.learn(Job(left, kept[left], 0.0), 600.0, 0.0)
        jobs = {told["requested_s"]: told["jobs"] for _, told in estimator.save()["open"]}
        assert jobs.get(7200.0, 0) == left


# -- what it is made of -------------------------------------------------------------------------


def test_contexts_sum_to_one_and_lean_on_the_general_where_nothing_was_seen() -> None:
    histograms = ContextHistograms((Level(0.99, 5.0), Level(0.9, 2.0)), 20, 50, user_level=0)
    for number in range(200):
        histograms.learn((("all",), (f"user-{number % 3}",)), 3 + number % 3)
    known, unknown = (histograms.predict((("all",), (user,))) for user in ("user-0", "new"))
    assert known.sum() == pytest.approx(1.0, abs=1e-12)
    assert unknown.sum() == pytest.approx(1.0, abs=1e-12)
    assert known.argmax() == 3
    assert known[3] > 0.5
    assert unknown[3:6].min() > 0.2, "a third each, as of all"


def test_each_level_is_smoothed_by_the_one_before_it() -> None:
    """Four bins; the first was seen once. Of all: (1 + 1/4) / 2; of the user: (1 + 2 x 5/8) / 3."""
    histograms = ContextHistograms((Level(0.9, 1.0), Level(0.9, 2.0)), 4, 50, user_level=1)
    assert histograms.predict((("all",), ("ann",))).tolist() == [0.25] * 4
    histograms.learn((("all",), ("ann",)), 0)
    known, unknown = (histograms.predict((("all",), (user,))) for user in ("ann", "bob"))
    assert known.tolist() == pytest.approx([(5 / 8 + 3 / 4) / 2, *[(1 / 8 + 1 / 12) / 2] * 3])
    assert unknown.tolist() == pytest.approx([5 / 8, *[1 / 8] * 3])


def test_what_is_learned_of_jobs_never_seen_says_nothing_of_jobs_that_are_often_seen() -> None:
    """A user has many jobs, of which no two are alike: weights of that situation alone move."""
    levels = (Level(0.99, 5.0), Level(0.99, 5.0), Level(0.99, 1.0))
    histograms = ContextHistograms(levels, 20, 1000, user_level=1)
    for number in range(300):
        histograms.learn((("all", number % 2), ("ann",), ("ann", number)), 3 + 9 * (number % 2))
    weights = np.array(histograms.save()["weights"])
    moved = {row for row in range(16) if abs(weights[row] - 1 / 3).max() > 1e-9}
    assert {4, 12} <= moved, "few jobs of the user, and many"
    assert all(row % 4 == 0 for row in moved), "but never one just like it"
    assert weights[12][0] > weights[12][1], "her jobs do not tell these apart"


def test_a_level_that_misleads_loses_its_say() -> None:
    """Check that users mean nothing here: only the size is informative."""
    histograms = ContextHistograms((Level(0.99, 5.0), Level(0.5, 1.0)), 20, 500, user_level=0)
    rng = random.Random(5)
    for _ in range(2000):
        size = rng.randrange(2)
        histograms.learn(((size,), (rng.randrange(5),)), 4 + 8 * size)
    assert histograms.predict(((1,), (2,)))[12] > 0.6


def test_quantile_levels_move_until_the_promise_is_kept() -> None:
    """Check that ranges that hold 65 % instead of 80 % are corrected by moved levels."""
    levels = QuantileLevels((0.1, 0.5, 0.9), 0.005)
    rng = np.random.default_rng(7)
    narrow = 0.7  # the distribution that is told has less spread than what comes
    held = []
    for _ in range(6000):
        told = narrow * np.array([np.log(at / (1.0 - at)) for at in levels.levels])
        u = rng.random()
        observed = float(np.log(u / (1.0 - u)))
        held.append(told[0] <= observed <= told[2])
        levels.learn(observed, told.tolist())
    assert 0.77 < np.mean(held[3000:]) < 0.83
    assert list(levels.levels) == sorted(levels.levels)


def test_quantile_levels_stay_apart_however_wrong_what_is_told() -> None:
    levels = QuantileLevels((0.1, 0.5, 0.9), 0.1)
    for _ in range(100):
        levels.learn(9.0, (1.0, 2.0, 3.0))  # longer than all that was told
    assert levels.levels == pytest.approx([0.3, 0.7, 0.99])
    for _ in range(100):
        levels.learn(0.5, (1.0, 2.0, 3.0))
    assert levels.levels == pytest.approx([0.01, 0.3, 0.7])


# -- the plain ones -----------------------------------------------------------------------------


def test_the_user_is_taken_at_his_word_or_nothing_is_said() -> None:
    estimator = UserRunTimes(PolicySettings(), random.Random(1))
    assert estimator.estimate(JobSpec(estimate_s=90.0), 0.0) == RunTimeEstimate(90.0, 90.0, 90.0)
    assert estimator.estimate(JobSpec(), 0.0) is None


def test_the_last_two_are_averaged_and_capped_by_the_request() -> None:
    estimator = LastTwoRunTimes(PolicySettings(), random.Random(1))
    ada = JobSpec(user="ada")
    assert isnan(median_of(estimator, ada))
    assert median_of(estimator, replace(ada, estimate_s=500.0)) == 500.0
    for run_s, expected_s in ((100.0, 100.0), (300.0, 200.0), (500.0, 400.0)):
        estimator.learn(Job(1, ada, 0.0), run_s, 0.0)
        assert median_of(estimator, ada) == expected_s
    assert median_of(estimator, replace(ada, estimate_s=250.0)) == 250.0
    again = LastTwoRunTimes(PolicySettings(), random.Random(1))
    again.restore(json.loads(json.dumps(estimator.save())))
    assert again.estimate(ada, 0.0) == estimator.estimate(ada, 0.0)


def test_users_without_end_are_not_all_remembered() -> None:
    estimator = LastTwoRunTimes(PolicySettings(), random.Random(1))
    estimator.learn(Job(1, JobSpec(user="ada"), 0.0), 100.0, 0.0)
    for n in range(MAX_USERS):
        estimator.learn(Job(1, JobSpec(user=f"made-up-{n}"), 0.0), 5.0, 0.0)
        if n % 1000 == 0:
            estimator.learn(Job(1, JobSpec(user="ada"), 0.0), 100.0, 0.0)
    assert len(estimator.save()["last_s"]) == MAX_USERS
    assert median_of(estimator, JobSpec(user="ada")) == 100.0
    assert isnan(median_of(estimator, JobSpec(user="made-up-0"))), "whose job ended longest ago"
