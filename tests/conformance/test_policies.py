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
