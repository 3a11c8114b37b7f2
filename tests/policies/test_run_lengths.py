"""Lengths of jobs without estimate, as planning policies learn them from those that end."""

from math import nan

import numpy as np

from outrider.api import COMPLETED_RUN, EVICTED_RUN, Job, JobSpec
from outrider.testing.fixtures import chance
from outrider_policies.planning.baselines import Replan
from outrider_policies.planning.planner import LengthSettings
from outrider_policies.planning.queued_jobs import SHORTEST_S, RunLengths, request_of
from tests.policies.views import HandView, outcome


def replanning() -> Replan:
    return Replan(LengthSettings(assumed_s=50.0), chance("replan"))


def end(policy: Replan, run_s: float, estimate_s: float | None, how: str = COMPLETED_RUN) -> None:
    job = Job(1, JobSpec(estimate_s=estimate_s), 0.0)
    view = HandView([1], [100.0])
    policy.observe(outcome(0, how, request_of(job), run_s=run_s), view, True)


def test_only_jobs_that_completed_without_an_estimate_say_how_long_such_jobs_take() -> None:
    policy = replanning()
    assert policy.lengths.typical_s == 50.0
    end(policy, 100.0, None)
    end(policy, 300.0, None)
    assert policy.lengths.typical_s == 200.0
    end(policy, 9000.0, 8000.0)  # it has an estimate, whatever it took
    end(policy, 2.0, None, EVICTED_RUN)  # nobody knows how long it would have taken
    assert policy.lengths.typical_s == 200.0


def test_what_was_learned_of_lengths_outlives_a_restart() -> None:
    before, after = RunLengths(50.0, None), RunLengths(50.0, None)
    before.completed(100.0)
    before.completed(400.0)
    after.restore(before.save())
    after.completed(100.0)
    assert (after.typical_s, after.longest_s) == (200.0, 400.0)


def test_the_longest_length_is_the_given_one_or_the_longest_seen_or_the_assumed_one() -> None:
    lengths = RunLengths(50.0, None)
    assert lengths.longest_s == 50.0
    assert lengths.of_queue(np.array([30.0, nan, 70.0])).tolist() == [30.0, 50.0, 70.0]
    assert lengths.longest_s == 70.0
    lengths.of_queue(np.array([60.0]))
    lengths.completed(20.0)
    assert lengths.longest_s == 70.0
    lengths.completed(90.0)
    assert lengths.longest_s == 90.0
    assert RunLengths(50.0, 40.0).longest_s == 40.0


def test_an_estimate_is_the_ideal_length_and_none_is_as_long_as_is_typical() -> None:
    lengths = RunLengths(50.0, None)
    assert lengths.ideal_s(Job(1, JobSpec(estimate_s=8.0), 0.0)) == 8.0
    assert lengths.ideal_s(Job(1, JobSpec(), 0.0)) == 50.0
    assert lengths.ideal_s(Job(1, JobSpec(estimate_s=0.0), 0.0)) == SHORTEST_S
