"""Conformance tests of every policy that ships with Outrider."""

import ast
from importlib.metadata import entry_points
from pathlib import Path
from typing import ClassVar

import pytest

from outrider.testing import PolicyConformance
from outrider_policies.bandits.bandit import Bandit
from outrider_policies.bandits.thompson import Thompson
from outrider_policies.bandits.ucb import DiscountedUcb
from outrider_policies.planning.baselines import Aggressive, Replan
from outrider_policies.planning.fuzzy_td import FuzzyTd
from outrider_policies.rules.orders import F1, EarliestDeadlineFirst, ShortestJobFirst, Unicep, Wfp3
from outrider_policies.rules.placements import BestFit, Fifo, LowestWatts, RandomMatch, WattsHold
from outrider_policies.rules.shares import FairShare, FairShareSjf, Multifactor
from outrider_policies.rules.user_priority import UserPriority
from outrider_policies.survival import Survival
from outrider_policies.window_net import WindowNet
from outrider_policies.wsept import Wsept


class TestFifo(PolicyConformance):
    policy = Fifo


class TestRandomMatch(PolicyConformance):
    policy = RandomMatch


class TestUserPriority(PolicyConformance):
    policy = UserPriority


class TestLowestWatts(PolicyConformance):
    policy = LowestWatts


class TestBandit(PolicyConformance):
    policy = Bandit


class TestBanditAsPrinted(PolicyConformance):
    policy = Bandit
    settings = Bandit.presets["literal"]


class TestBanditThatReconsidersEveryFiveMinutes(PolicyConformance):
    policy = Bandit
    settings: ClassVar = {"reconsider_s": 300.0, "max_defer_s": 7200.0, "epsilon": 0.5}


class TestShortestJobFirst(PolicyConformance):
    policy = ShortestJobFirst


class TestEarliestDeadlineFirst(PolicyConformance):
    policy = EarliestDeadlineFirst


class TestBestFit(PolicyConformance):
    policy = BestFit


class TestWattsHold(PolicyConformance):
    policy = WattsHold


class TestWattsHoldThatHoldsSoon(PolicyConformance):
    policy = WattsHold
    settings: ClassVar = {"hold_after_h": 0.5, "max_defer_s": 7200.0}


class TestBanditOfComputers(PolicyConformance):
    policy = Bandit
    settings: ClassVar = {"level": "computer"}


class TestBanditByTheWeek(PolicyConformance):
    policy = Bandit
    settings: ClassVar = {"level": "cluster_week"}


class TestBanditOfTheSystem(PolicyConformance):
    policy = Bandit
    settings: ClassVar = {"level": "system"}


class TestBanditWithEveryOption(PolicyConformance):
    policy = Bandit
    settings: ClassVar = {
        "history_n": 20, "history_weights": "gaussian", "untried_reward": -1.0,
        "first_n": 5, "divergence_ratio": 0.5, "divergence_n": 5,
        "offer_full": True, "avoid_reboot": True,
    }  # fmt: skip


class TestThompson(PolicyConformance):
    policy = Thompson


class TestThompsonThatDrawsForEveryComputer(PolicyConformance):
    policy = Thompson
    settings: ClassVar = {"level": "computer", "resample_s": 0.0}


class TestDiscountedUcb(PolicyConformance):
    policy = DiscountedUcb


class TestSurvival(PolicyConformance):
    policy = Survival


class TestSurvivalThatKeepsAlmostEveryJob(PolicyConformance):
    policy = Survival
    settings: ClassVar = {"worth_ratio": 0.05, "max_defer_s": 7200.0}


class TestSurvivalThatForgetsQuickly(PolicyConformance):
    policy = Survival
    settings: ClassVar = {"forgetting_ratio": 0.2, "regime_h": 6.0, "shrinkage_h": 1.0}


class TestFuzzyTd(PolicyConformance):
    policy = FuzzyTd


class TestFuzzyTdAsPrinted(PolicyConformance):
    policy = FuzzyTd
    settings = FuzzyTd.presets["literal"]


class TestFuzzyTdWithEveryOption(PolicyConformance):
    policy = FuzzyTd
    settings: ClassVar = {"update": "every_round", "skip_hopeless": True, "weigh_replan": True}


class TestAggressive(PolicyConformance):
    policy = Aggressive


class TestReplan(PolicyConformance):
    policy = Replan


class TestWfp3(PolicyConformance):
    policy = Wfp3


class TestUnicep(PolicyConformance):
    policy = Unicep


class TestF1(PolicyConformance):
    policy = F1


class TestFairShare(PolicyConformance):
    policy = FairShare


class TestMultifactor(PolicyConformance):
    policy = Multifactor


class TestFairShareSjf(PolicyConformance):
    policy = FairShareSjf


class TestWsept(PolicyConformance):
    policy = Wsept


class TestWindowNet(PolicyConformance):
    policy = WindowNet


BOUNDS = {"clairvoyant", "clairvoyant_jobs"}
"""Policies that need the truth; `tests/policies/test_clairvoyant.py` tests them instead."""


def test_no_policy_that_is_declared_is_forgotten(repository: Path) -> None:
    ours = {
        point.name: point
        for point in entry_points(group="outrider.policies")
        if point.dist is not None and point.dist.name == "outrider"
    }
    if not ours:
        pytest.skip("outrider is not installed here, only on the path: pip install -e .")
    assert {name for name, point in ours.items() if point.load().needs_oracle} == BOUNDS
    asked = {
        kind
        for file in (repository / "tests").rglob("test_*.py")
        for kind in _covered_policies(file)
    }
    forgotten = {n for n, point in ours.items() if point.attr not in asked} - BOUNDS
    assert not forgotten, f"no subclass of PolicyConformance in tests/ names {forgotten}"


def _covered_policies(file: Path) -> set[str]:
    """Return the names of the policies that conformance classes of a test file cover."""
    text = file.read_text(encoding="utf-8")
    if PolicyConformance.__name__ not in text:
        return set()  # true of most files: parsing all of them takes a second
    tree = ast.parse(text)
    suites = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        and any(isinstance(b, ast.Name) and b.id == PolicyConformance.__name__ for b in node.bases)
    ]
    return {
        line.value.id
        for suite in suites
        for line in suite.body
        if isinstance(line, ast.Assign)
        and isinstance(line.value, ast.Name)
        and any(isinstance(target, ast.Name) and target.id == "policy" for target in line.targets)
    }
