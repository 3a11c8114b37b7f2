"""Tests of the policy suite: it passes sound policies and catches every breach of contract."""

import random
import subprocess
import sys

import pytest

from outrider.api import PREEMPT, RESUME, SHRINK, START, Choice, Policy, build
from outrider.testing import NotConforming, PolicyConformance, check_policy
from outrider.testing.campuses import tiny_campus
from outrider.testing.fixtures import decisions_of
from outrider_policies.planning.baselines import Aggressive
from outrider_policies.planning.planner import PlanningSettings
from tests.conformance import broken_policies as broken

UNDECLARED = {"does not apply: it does not learn", "does not apply: it does not predict"}
"""Skipped tests of a policy that neither learns nor predicts."""


@pytest.mark.parametrize(
    ("policy", "skipped"),
    [(broken.Sound, UNDECLARED), (broken.Learner, {"does not apply: it does not predict"})],
)
def test_a_sound_policy_passes_everything_that_it_declares(
    policy: type[Policy], skipped: set[str]
) -> None:
    assert set(check_policy(policy).values()) == {"passed"} | skipped


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (
            broken.TakesTheFirstMachine,
            "chose machine 0 .* cannot start there: asked for 1 CPU",
        ),
        (broken.NeverStarts, "deferred the job although may_defer is False"),
        (broken.DrawsFromTheGlobalGenerator, "a second run with the same seed differs"),
        (broken.SharesItsMemoryThroughTheClass, "a run with others in shadow differs"),
        (broken.ChangesTheSite, "choose\\(\\) changed the site"),
        (broken.TellsTheChanceOfTheMachine, "it must be the cluster.s, not the machine.s"),
        (broken.AlwaysCertain, "with propensity 1;"),
        (broken.SeesTheFuture, "a campus whose future differs differs in decision 1:"),
        (broken.CannotDoWithoutWatts, "test_watts_may_be_unknown: PolicyError: .*TypeError"),
        (
            broken.KnowsOnlyTheClustersOfTheBeginning,
            "test_machines_and_clusters_may_come_and_go: PolicyError: .*IndexError",
        ),
        (broken.ForgetsAtARestart, "at the end of a run with a restart: the score of"),
        (broken.SavesClustersByNumber, "after clusters were renumbered: the score of"),
        (
            broken.SavesWhatIsNoPlainData,
            "test_a_restart_changes_nothing: PolicyError: .*save returned",
        ),
        (broken.LearnsFromBeingAsked, "after 50 choices: the score of"),
        (broken.ScoresByWhatIsNoNumber, "must be a finite number: nan"),
        (broken.KnowsOnlyTwoEndings, "test_it_takes_every_ending: .*KeyError: 'removed'"),
        (broken.SaysNothing, "explain\\(\\) returned ''"),
        (broken.LeavesAUnitOpen, "timeout has no unit; .* ends with '_s'"),
        (broken.HasAForbiddenDefault, "a default of ForbiddenDefault is not among the values"),
        (broken.DoesNotSayWhatASettingIsFor, "SilentSettings.grace_s has no description"),
        (broken.HasAStalePreset, 'unknown setting "grace_seconds"'),
        (broken.BadlyNamed, "name 'Badly-Named': expected small letters"),
        (broken.FromTheFuture, "FromTheFuture was written against version 99 of the contract"),
        (broken.PlansForAStranger, "unknown job 1000000"),
        (broken.PlansMoreThanThereIs, "machine 0 has 1 CPUs too few"),
        (broken.PlansOnAMachineThatIsNotThere, "there is no machine 99"),
        (broken.PlansAJobTwice, "was moved already"),
        (broken.StartsOnFewerCpus, "a start gives all 2 CPUs it requests"),
        (broken.PlansNothing, "no plan ever moved a job"),
        (broken.PlansWithoutAReason, "the reason must be a word or two: ''"),
        (broken.SpoilsTheQueue, "plan\\(\\) changed the site"),
        (broken.PlansByTheGlobalGenerator, "a second run with the same seed differs"),
        (broken.PlansByTheFuture, "a campus whose future differs differs in decision"),
        (broken.LearnsFromPlanning, "after 50 choices: the score of 'plans'"),
    ],
)
def test_a_broken_policy_gets_its_breach_reported(policy: type[Policy], message: str) -> None:
    with pytest.raises(NotConforming, match=message):
        check_policy(policy)


def test_a_test_that_does_not_apply_is_reported_as_such() -> None:
    class Unsure(broken.Sound):
        def choose(self, *given: object) -> Choice:
            choice = super().choose(*given)  # type: ignore[arg-type]
            choice.propensity = None
            return choice

    answers = check_policy(Unsure)
    name = PolicyConformance.test_propensities_are_the_frequencies_of_its_choices.__name__
    assert answers.pop(name).startswith(
        "does not apply: it declares that its propensities are unknown"
    )
    assert set(answers.values()) == {"passed"} | UNDECLARED


def test_a_planner_is_asked_everything_but_where_one_job_should_run() -> None:
    answers = check_policy(broken.SoundPlanner)
    for question in (
        PolicyConformance.test_it_starts_a_job_that_may_not_be_kept,
        PolicyConformance.test_propensities_are_the_frequencies_of_its_choices,
    ):
        assert answers.pop(question.__name__).startswith("does not apply: it plans whole passes")
    assert set(answers.values()) == {"passed"} | UNDECLARED


def test_on_the_grid_for_planners_every_kind_of_move_happens() -> None:
    """The suite tests every kind of move, so that no planner passes untested."""
    policy = Aggressive(build(PlanningSettings, {}, ""), random.Random(0))
    rows = decisions_of(tiny_campus(), policy)
    assert {row.action for row in rows} >= {START, SHRINK, PREEMPT, RESUME}


def test_the_suites_need_no_test_runner() -> None:
    asked = "import sys, outrider.testing; print('pytest' in sys.modules)"
    message = subprocess.run(
        [sys.executable, "-c", asked], capture_output=True, text=True, check=True, timeout=60.0
    )
    assert message.stdout.strip() == "False"


def test_all_breaches_are_reported_together() -> None:
    class Twice(broken.SaysNothing):
        settings_type = broken.UnclearSettings

    with pytest.raises(NotConforming) as raised:
        check_policy(Twice)
    assert "explain() returned" in str(raised.value)
    assert "has no unit" in str(raised.value)
