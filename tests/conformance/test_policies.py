"""Every policy that ships with Outrider holds what outsiders' policies must hold."""

from typing import ClassVar

from outrider.testing import PolicyConformance
from outrider_policies.bandit import Bandit
from outrider_policies.fifo import Fifo
from outrider_policies.lowest_watts import LowestWatts
from outrider_policies.random_match import RandomMatch


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
