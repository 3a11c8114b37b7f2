"""Every policy that ships with Outrider holds what outsiders' policies must hold."""

from typing import ClassVar

from outrider.testing import PolicyConformance
from outrider_policies.bandit import Bandit
from outrider_policies.best_fit import BestFit
from outrider_policies.edf import EarliestDeadlineFirst
from outrider_policies.fifo import Fifo
from outrider_policies.lowest_watts import LowestWatts
from outrider_policies.random_match import RandomMatch
from outrider_policies.sjf import ShortestJobFirst
from outrider_policies.survival import Survival
from outrider_policies.thompson import Thompson
from outrider_policies.ucb import DiscountedUcb
from outrider_policies.watts_hold import WattsHold


class TestFifo(PolicyConformance):
    policy = Fifo


class TestRandomMatch(PolicyConformance):
    policy = RandomMatch


class TestLowestWatts(PolicyConformance):
    policy = LowestWatts


class TestBandit(PolicyConformance):
    policy = Bandit


class TestBanditAsPrinted(PolicyConformance):
    policy = Bandit
    settings = Bandit.presets["literal"]


class TestBanditThatReconsidersEveryFiveMinutes(PolicyConformance):
    policy = Bandit
    settings: ClassVar = {"reconsider_s": 300.0, "max_hold_s": 7200.0, "epsilon": 0.5}


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
    settings: ClassVar = {"hold_after_h": 0.5, "max_hold_s": 7200.0}


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
    settings: ClassVar = {"worth_ratio": 0.05, "max_hold_s": 7200.0}


class TestSurvivalThatForgetsQuickly(PolicyConformance):
    policy = Survival
    settings: ClassVar = {"forgetting_ratio": 0.2, "regime_h": 6.0, "shrinkage_h": 1.0}
