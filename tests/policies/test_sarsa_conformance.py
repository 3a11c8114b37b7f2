"""`sarsa` and `sdj` hold what every policy must hold, with each kind of value function."""

from typing import ClassVar

from outrider.testing import PolicyConformance
from outrider_policies.rules.orders import ShortDeadlineJobs
from outrider_policies.sarsa import Sarsa


class TestSarsa(PolicyConformance):
    policy = Sarsa


class TestSarsaThatExploresAndStartsWithNothing(PolicyConformance):
    policy = Sarsa
    settings: ClassVar = {"start": "none", "epsilon": 0.5, "memory_n": 20}


class TestFrozenSarsa(PolicyConformance):
    policy = Sarsa
    settings: ClassVar = {"learn": False}


class TestSarsaAsPrinted(PolicyConformance):
    policy = Sarsa
    settings: ClassVar = {**Sarsa.presets["literal"], "start": "none", "retrain_every_n": 40}


class TestSarsaOfTrees(PolicyConformance):
    policy = Sarsa
    settings: ClassVar = {
        "approximator": "boosting", "training": "batch", "start": "none",
        "retrain_every_n": 30, "adopt_after_n": 10,
    }  # fmt: skip


class TestShortDeadlineJobs(PolicyConformance):
    policy = ShortDeadlineJobs
