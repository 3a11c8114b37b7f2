"""Learning in shadow from what the batch system did, and the agreement with it."""

from collections import defaultdict

import pytest
from hypothesis import given, settings

from outrider.formats.campus.campus import Campus
from outrider.testing.hand_campus import HOUR_S, Session, Work, make_campus
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play, Shadow, bandit
from tests.fixtures.truth import Run, runs_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(60), derandomize=True)
SIGMA = 0.8


def states(campus: Campus, runs: list[Run]) -> list[int]:
    """Return the state at each run's start: hour x 24 + hours of the longest lost run."""
    lost: dict[int, float] = defaultdict(float)
    start = campus.start.hour * HOUR_S + campus.start.minute * 60
    out = []
    for run in runs:
        hour = int((start + run.start_s) % 86_400 // 3600)
        out.append(hour * 24 + min(23, int(lost[run.job] // 3600)))
        if run.ending != "completed":
            lost[run.job] = max(lost[run.job], run.end_s - run.start_s)
    return out


@thorough
@given(campus=campuses())
def test_values_of_places_are_the_means_of_what_happened_there(campus: Campus) -> None:
    learner = bandit(sigma=SIGMA)
    play = Play(campus, [MAKERS["random_match"](), learner])
    runs = runs_of(play.told, campus.span_s)
    watts = {int(c): float(w) for c, w in zip(campus.machine_cluster, campus.active_w, strict=True)}
    least, most = min(watts.values()), max(watts.values())
    rewards: dict[tuple[int, int], list[float]] = defaultdict(list)
    for run, key in zip(runs, states(campus, runs), strict=True):
        cluster = int(campus.machine_cluster[run.machine])
        energy = (watts[cluster] - least) / (most - least) if most > least else 0.0
        if run.ending == "completed":
            rewards[key, cluster].append(1 - SIGMA * energy)
        elif run.ending != "open":
            rewards[key, cluster].append(-1 + SIGMA * (1 - energy))
    for key in range(24 * 24):
        scores = learner.scores(key, play.site)
        for cluster, spec in enumerate(campus.clusters):
            got = rewards.get((key, cluster), [])
            expected = sum(got) / len(got) if got else 0.0
            assert scores[spec.name] == pytest.approx(expected), (key, spec.name)


@thorough
@given(campus=campuses())
def test_agreement_is_counted_against_the_cluster_that_was_used(campus: Campus) -> None:
    """Return choices recomputed from the shadow policy's rows at the start of each run."""
    play = Play(campus, [MAKERS["random_match"](), bandit()])
    agreed = disagreed = 0
    cluster_of = dict(zip(campus.machine_names, campus.machine_cluster.tolist(), strict=True))
    for run in runs_of(play.told, campus.span_s):
        name = campus.job_names[run.job]
        since = max((t for t, k, s, _ in play.told if s == run.job and k in (1, 6)
                     and t <= run.start_s), default=0.0)  # fmt: skip
        stood = [r for r in play.of("bandit") if r.job == name and since <= r.time_s <= run.start_s]
        if stood[-1].reason == "no_machine":
            continue
        place = stood[-1].machine
        same = place is not None and cluster_of[place] == campus.machine_cluster[run.machine]
        agreed, disagreed = agreed + same, disagreed + (not same)
    runner = play.runners[1]
    assert (runner.agreed, runner.disagreed) == (agreed, disagreed)


def test_a_run_is_on_policy_only_where_the_policy_would_have_used_the_same_cluster() -> None:
    campus = make_campus([0, 1], [Work(0.0, 100.0), Work(50.0, 100.0)], end_s=HOUR_S)
    play = Play(campus, [MAKERS["fifo"]()])  # j0 on m0 of c0, j1 on m1 of c1
    for wanted, expected in (("c0", [True, False]), ("c1", [False, True])):
        learner = bandit(epsilon=0.0, max_defer_s=0.5)
        shadow = Shadow(campus, [learner])
        shadow.engine.feed(play.told[:0])
        rows = {"clusters": ["c0", "c1"], "kept": []}
        good = [0.0, 5.0 if wanted == "c0" else -5.0, 5.0 if wanted == "c1" else -5.0]
        learner.restore(rows | {"rows": [[0, [good, [0.0, 1.0, 1.0]]]]}, shadow.site)
        # the second job finds only c1 free: it is the only arm left
        shadow.engine.feed(play.told)
        ends = [end[-1] for end in shadow.decision_log.ends]
        assert ends == ([True, True] if wanted == "c0" else expected)


def test_an_acting_policy_is_always_on_policy() -> None:
    campus = make_campus([0, 1], [Work(0.0, 100.0)], [Session(0, 500.0, 600.0)], end_s=HOUR_S)
    play = Play(campus, [bandit(epsilon=0.0, max_defer_s=0.5)])
    assert (play.runners[0].agreed, play.runners[0].disagreed) == (0, 0)
    assert play.runners[0].reward_n == 1
