"""Plugins that fail at any call: the daemon and the other plugins continue."""

import random
from types import SimpleNamespace
from typing import Any, NoReturn

import numpy as np
import pytest

from outrider.api import Batch
from outrider.api.estimator import RunTimeEstimate
from outrider.engine import PolicyRunner
from outrider.model.errors import PluginError
from outrider.model.events import SUBMITTED, NamedEvent
from outrider.model.jobs import Job, JobSpec
from outrider.model.utility import DEFAULT_UTILITIES
from outrider.model.utility import Batch as BatchUtility
from outrider.service.core.core import Core
from outrider.service.core.plugins import GuardedEstimator, GuardedUtility, guarded_utilities
from outrider.service.daemon.sources import check_batch
from outrider.service.views import explanation, status
from tests.fixtures.cores import T, core_of, run_of, tell

QUEUED: list[NamedEvent] = [(T, SUBMITTED, "1", JobSpec())]


def fails(*args: Any, **named: Any) -> NoReturn:
    """Raise an error, like a faulty plugin."""
    raise KeyError("nobody thought of this")


def core_with(**broken: Any) -> tuple[Core, PolicyRunner]:
    """Return a core whose bandit fails in these methods, and whose fifo does not."""
    core = core_of("log", policies={"bandit": {}, "fifo": {}})
    runner = core.runners[0]
    for name, method in broken.items():
        setattr(runner.policy, name, method)
    return core, runner


@pytest.mark.parametrize("method", ["group_key", "choose", "observe", "evaluate_group"])
def test_a_policy_that_fails_at_deciding_or_learning_loses_its_seat_alone(method: str) -> None:
    core, runner = core_with(**{method: fails})
    tell(core, "log", [*run_of("1", T), *run_of("2", T + 1), *run_of("3", T + 10)], T + 30)
    tell(core, "log", [*QUEUED, *run_of("4", T + 40)], T + 60)
    assert "nobody thought of this" in runner.broken
    assert not core.runners[1].broken
    assert core.accounting.completed == 4
    assert core.merger.set_aside["fault"] == 0


@pytest.mark.parametrize("rewards", [["much"], 3.0, [1.0, None]])
def test_a_policy_whose_rewards_are_no_numbers_loses_its_seat(rewards: Any) -> None:
    core, runner = core_with(observe=lambda *args: rewards)
    tell(core, "log", run_of("1", T), T + 30)
    assert 'policy "bandit" failed' in runner.broken
    assert core.accounting.completed == 1


def test_a_policy_that_cannot_explain_or_show_itself_says_so_and_keeps_its_seat() -> None:
    core, runner = core_with(explain=fails, learned=fails)
    tell(core, "log", QUEUED, T + 30)
    found = explanation.explain(core, "1", [])
    assert found is not None
    explanations = {policy["name"]: policy["explanation"] for policy in found["policies"]}
    assert explanations["bandit"].startswith("bandit could not explain this: KeyError")
    assert explanations["fifo"]
    shown = {policy["name"]: policy for policy in status.status(core, {})["policies"]}
    assert shown["bandit"]["learned"]["title"].startswith("bandit could not show it")
    assert not runner.broken


def test_a_policy_that_cannot_be_saved_does_not_keep_the_others_from_it() -> None:
    core, runner = core_with(save=fails)
    tell(core, "log", QUEUED, T + 30)
    saved = core.save()
    assert "nobody thought of this" in runner.broken
    again = core_of("log", policies={"bandit": {}, "fifo": {}})
    assert again.restore(saved) == ["bandit"]
    assert len(again.runners[1].queue.waiting) == 1


def test_a_policy_that_fails_at_being_restored_has_an_empty_seat() -> None:
    core, _ = core_with()
    tell(core, "log", QUEUED, T + 30)
    again, runner = core_with(restore=fails)
    assert again.restore(core.save()) == ["bandit"]
    assert 'policy "bandit" failed' in runner.broken
    assert not runner.queue.waiting
    tell(again, "log", run_of("2", T + 40), T + 60)
    assert again.accounting.completed == 1


def estimator(**methods: Any) -> GuardedEstimator:
    """An estimator of a plugin, guarded."""
    sound = {
        "estimate": lambda spec, now: RunTimeEstimate(60.0, 1.0, 100.0),
        "learn": fails, "save": fails, "restore": fails,
        "settings": None, "rng": random.Random(1),
    }  # fmt: skip
    plugin: Any = SimpleNamespace(**(sound | methods))
    return GuardedEstimator(plugin)


@pytest.mark.parametrize("median_s", [float("nan"), float("inf"), -1.0])
def test_an_estimate_that_cannot_be_counts_as_a_failure(median_s: float) -> None:
    guarded = estimator(estimate=lambda spec, now: RunTimeEstimate(median_s, 0.0, 1.0))
    assert guarded.estimate(JobSpec(estimate_s=5.0), T) is None
    assert "what users asked for counts instead" in guarded.broken


def test_a_sound_estimator_is_asked_taught_saved_and_restored() -> None:
    taught: list[Any] = []
    guarded = estimator(
        learn=lambda *args: taught.append(args), save=lambda: {"n": 3}, restore=taught.append
    )
    assert guarded.estimate(JobSpec(), T) == RunTimeEstimate(60.0, 1.0, 100.0)
    job = Job(7, JobSpec(), T)
    guarded.learn(job, 30.0, T)
    saved = guarded.save()
    guarded.restore(saved)
    assert taught == [(job, 30.0, T), {"n": 3}]
    assert guarded.broken == ""
    nothing = estimator(estimate=lambda spec, now: None)
    assert nothing.estimate(JobSpec(), T) is None
    assert nothing.broken == "", "that it cannot say is no failure"


def test_an_estimator_that_fails_at_learning_saving_or_restoring_is_noted_and_nothing_ends() -> (
    None
):
    guarded = estimator()
    guarded.learn(Job(7, JobSpec(), T), 30.0, T)
    assert "failed: KeyError: 'nobody thought of this'" in guarded.broken
    assert guarded.estimate(JobSpec(), T) is None, "it is asked no more"
    taught: list[Any] = []
    guarded._estimator.learn = lambda *args: taught.append(args)  # type: ignore[method-assign]
    guarded.learn(Job(7, JobSpec(), T), 30.0, T)
    assert taught == [], "nor taught"
    for method, nothing in (("save", {}), ("restore", None)):
        guarded = estimator()
        assert getattr(guarded, method)(*([{}] if method == "restore" else [])) == nothing
        assert "what users asked for counts instead" in guarded.broken


def test_what_an_estimator_learned_that_does_not_fit_is_told_to_whoever_restores() -> None:
    def refuse(saved: Any) -> NoReturn:
        raise ValueError("5 levels; expected 3")

    guarded = estimator(restore=refuse)
    with pytest.raises(ValueError, match="expected 3"):
        guarded.restore({})
    assert guarded.broken == "", "it begins anew"


def test_an_estimator_that_fails_is_asked_no_more_and_noted() -> None:
    core = core_of("log", estimator="learned")
    assert core._estimator is not None
    core._estimator._estimator.estimate = fails  # type: ignore[method-assign]
    tell(core, "log", [*QUEUED, *run_of("2", T + 1)], T + 30)
    assert core.accounting.completed == 1
    assert core.merger.set_aside["fault"] == 0
    assert "run time estimator" in core.notes()[0]


def test_a_utility_that_fails_gives_way_to_the_default_of_its_class() -> None:
    plugin: Any = SimpleNamespace(unit=fails)
    guarded = GuardedUtility(plugin, "batch")
    spent_s, ideal_s = np.array([100.0, 5_000.0]), np.array([50.0, 50.0])
    default = DEFAULT_UTILITIES["batch"].unit(spent_s, ideal_s)
    assert isinstance(DEFAULT_UTILITIES["batch"], BatchUtility)
    assert guarded.unit(spent_s, ideal_s).tolist() == default.tolist()
    assert "the default of class batch counts instead" in guarded.broken


@pytest.mark.parametrize("module", ["a_plugin", "outrider.model.utilities", "zzz"])
def test_only_functions_that_come_with_outrider_are_not_guarded(module: str) -> None:
    plugin: Any = type("Mine", (), {"__module__": module, "unit": fails})()
    found = guarded_utilities({"batch": plugin, "interactive": DEFAULT_UTILITIES["interactive"]})
    assert isinstance(found["batch"], GuardedUtility)
    assert found["interactive"] is DEFAULT_UTILITIES["interactive"]


def test_a_sound_utility_counts_and_one_of_another_shape_does_not() -> None:
    spent_s, ideal_s = np.array([100.0, 5_000.0]), np.array([50.0, 50.0])
    sound: Any = SimpleNamespace(unit=lambda turnaround_s, ideal_s: [0.25, 0.5])
    guarded = GuardedUtility(sound, "batch")
    assert guarded.unit(spent_s, ideal_s).tolist() == [0.25, 0.5]
    assert guarded.broken == ""
    short: Any = SimpleNamespace(unit=lambda turnaround_s, ideal_s: [0.25])
    guarded = GuardedUtility(short, "batch")
    default = DEFAULT_UTILITIES["batch"].unit(spent_s, ideal_s)
    assert guarded.unit(spent_s, ideal_s).tolist() == default.tolist()
    assert "shape (1,), expected (2,)" in guarded.broken
    short.unit = sound.unit
    assert guarded.unit(spent_s, ideal_s).tolist() == default.tolist(), "it is asked no more"


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"events": None}, "events"),
        ({"cursor": object()}, "object"),
        ({"cursor": "\ud800"}, "surrogates"),
        ({"age_s": -1.0}, "age_s"),
        ({"age_s": "new"}, "str"),
        ({"seen_until_s": float("nan")}, "seen_until_s"),
        ({"seen_until_s": "now"}, "str"),
        ({"rejected": {"why": "x"}}, "counts by name"),
        ({"rejected": {"why": -1}}, "counts by name"),
        ({"ignored": {"why": True}}, "counts by name"),
        ({"ignored": {7: 1}}, "counts by name"),
        ({"written_s": {"EventLog": float("inf")}}, "written_s must hold Unix seconds"),
        ({"written_s": {7: 1.0}}, "written_s must hold Unix seconds"),
        ({"problem": 3}, "problem = 3"),
        ({"note": None}, "note"),
    ],
)
def test_a_batch_that_cannot_be_taken_in_is_the_fault_of_its_adapter(
    given: dict[str, Any], named: str
) -> None:
    with pytest.raises(PluginError, match=named):
        check_batch(Batch(**({"events": [], "cursor": None} | given)))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"age_s": 0.0, "seen_until_s": T, "rejected": {"why": 0}, "ignored": {"why": 3}},
        {"events": (), "cursor": {"a": [1]}, "written_s": {"EventLog": T}, "problem": "a word"},
    ],
)
def test_a_batch_that_is_right_is_taken(given: dict[str, Any]) -> None:
    check_batch(Batch(**({"events": [], "cursor": None} | given)))
