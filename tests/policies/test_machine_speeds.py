"""Speeds of machines, learned from runs against their estimates."""

import random
from typing import Any

import pytest

from outrider.api import NOWHERE
from outrider_policies.sarsa.policy import MachineSpeeds


class Machines:
    """Machines with so many CPUs left, and what is said of their speeds."""

    def __init__(self, *left: int, said: float = 1.0) -> None:
        self.left = left
        self.said = said

    def speed_of(self, machine: int) -> float:
        return self.said

    def cpus_left(self, machine: int) -> int:
        return self.left[machine]

    def fitting(self, cpus: int) -> list[int]:
        return [machine for machine, left in enumerate(self.left) if left >= cpus]

    def tightest(self, cpus: int) -> int:
        return min(self.fitting(cpus), key=lambda m: (self.left[m], m), default=NOWHERE)


def after_runs(site: Any, runs: int = 60, bias: float = 1.0) -> MachineSpeeds:
    """Machine 0 works at a third of the speed of the others, and users err by a factor."""
    speeds = MachineSpeeds()
    for _ in range(runs):
        for machine in range(len(site.left)):
            run_s = 600.0 * (3.0 if machine == 0 else 1.0)
            speeds.take(machine, bias * 600.0, run_s, site)
    return speeds


def test_a_slow_machine_is_known_by_its_runs_and_left_for_last() -> None:
    site: Any = Machines(1, 4, 4)
    speeds = after_runs(site)
    assert speeds.speed(1, site) / speeds.speed(0, site) == pytest.approx(3.0, rel=0.05)
    assert speeds.fastest(1, site) == 1, "though machine 0 is tighter"
    assert speeds.fastest(9, site) == NOWHERE


def test_what_all_users_estimate_wrongly_is_no_speed() -> None:
    site: Any = Machines(1, 4, 4)
    speeds = after_runs(site, runs=300, bias=5.0)
    assert speeds.speed(1, site) / speeds.speed(0, site) == pytest.approx(3.0, rel=0.1)


def test_of_alike_machines_the_tightest_is_taken() -> None:
    site: Any = Machines(4, 2, 3)
    speeds = MachineSpeeds()
    for machine in range(3):
        speeds.take(machine, 600.0, 610.0, site)
    assert speeds.fastest(1, site) == 1


def test_a_run_that_failed_at_once_says_little() -> None:
    site: Any = Machines(1, 1)
    speeds = MachineSpeeds()
    speeds.take(0, 86_400.0, 0.001, site)
    assert speeds.speed(0, site) < 2.0


def test_what_was_saved_goes_on() -> None:
    site: Any = Machines(1, 4)
    one, other = after_runs(site, runs=5), MachineSpeeds()
    other.restore(one.save())
    for speeds in (one, other):
        speeds.take(0, 600.0, 700.0, site)
    assert [one.speed(m, site) for m in (0, 1)] == [other.speed(m, site) for m in (0, 1)]
    assert other.fastest(1, site) == 1


def test_the_widest_difference_is_known_without_looking_at_all_machines_again() -> None:
    rng, speeds = random.Random(1), MachineSpeeds()
    site: Any = Machines(*[1] * 40)
    for _ in range(2000):
        speeds.take(rng.randrange(40), 100.0, rng.lognormvariate(4.6, 0.05), site)
        logs = speeds.save()["logs"]
        widest = max(log for _, log in logs) - min(log for _, log in logs)
        assert speeds._differ == (widest > 0.1)
