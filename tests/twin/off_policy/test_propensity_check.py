"""Propensity check: whether starts fell at random, judged by their counts."""

import random

import numpy as np
import pytest

from outrider.twin.off_policy.check import BOUND, ChoiceCounts, PropensityCheck, checked

MACHINES = range(40)


def checked_draws(seed: int, favoured: float = 1.0, n: int = 4000) -> PropensityCheck:
    """Draw from 1 to 40 free ones of 40 machines, 10 of them in group 1."""
    rng = random.Random(seed)
    machines, groups = ChoiceCounts(), ChoiceCounts()
    for _ in range(n):
        free = rng.sample(MACHINES, rng.randint(1, 40))
        weights = [favoured if machine < 10 else 1.0 for machine in free]
        chosen = rng.choices(free, weights)[0]
        machines.add_uniform(chosen, free)
        in_first = sum(machine < 10 for machine in free)
        chances = {1: in_first / len(free), 0: 1.0 - in_first / len(free)}
        groups.add(int(chosen < 10), {group: c for group, c in chances.items() if c})
    names = {machine: f"pc{machine}" for machine in MACHINES}
    return checked(groups, machines, {0: "hall", 1: "lab"}, names)


def test_uniform_draws_are_believed() -> None:
    for seed in range(40):
        assert checked_draws(seed, n=800).failures() == []


def test_draws_that_favour_a_group_are_not() -> None:
    counted = checked_draws(1, favoured=1.4)
    assert counted.groups["lab"] > BOUND
    assert counted.groups["hall"] == pytest.approx(-counted.groups["lab"])
    assert any("machine group lab" in why for why in counted.failures())


def test_a_machine_that_is_preferred_is_found_among_many() -> None:
    rng = random.Random(2)
    machines, groups = ChoiceCounts(), ChoiceCounts()
    for _ in range(4000):
        free = rng.sample(MACHINES, 20)
        chosen = 7 if 7 in free and rng.random() < 0.1 else rng.choice(free)
        machines.add_uniform(chosen, free)
        groups.add(0, {0: 1.0})
    counted = checked(
        groups, machines, {0: "all"}, {machine: f"pc{machine}" for machine in MACHINES}
    )
    assert (counted.machine, counted.groups) == ("pc7", {})
    assert counted.machines_bound > BOUND
    assert len(counted.failures()) == 1


def test_z_is_near_to_normal_even_of_few_draws() -> None:
    """Frequencies beyond -2.5 and 3 are as expected, for 20,000 counts with expectation 5."""
    rng = np.random.default_rng(5)
    zs: list[float] = []
    for _ in range(2000):
        counts = ChoiceCounts()
        for chosen in rng.integers(0, 10, 50).tolist():
            counts.add_uniform(chosen, range(10))
        zs += counts.z().values()
    z = np.array(zs)
    for beyond, right in ((z < -2.5, 0.0062), (z > 3.0, 0.00135)):
        assert 0.5 * right < beyond.mean() < 1.5 * right


def test_without_an_alternative_a_start_tells_nothing() -> None:
    counts = ChoiceCounts()
    counts.add_uniform(3, [3])
    assert counts.z() == {}
    assert checked(counts, counts, {}, {}).failures() == []
