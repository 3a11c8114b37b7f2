"""Detection of black holes: with chance, with users whose jobs always fail, and with many."""

import numpy as np

from outrider.report.offenders import ALPHA, black_holes

MACHINES, USERS = 100, 12


def site(
    rng: np.random.Generator, rates: dict[str, float], holes: dict[int, float], jobs: int
) -> dict[tuple[int, str], tuple[int, int]]:
    """Simulate jobs that start or fail on the machines of a site.

    Args:
        rng: chance.
        rates: how likely a start of each user fails anywhere.
        holes: how likely every start fails on some machines.
        jobs: how many on a machine, in the mean, of each user.
    """
    tries = {}
    for machine in range(MACHINES):
        for user, rate in rates.items():
            n = int(rng.poisson(jobs))
            if n:
                failed = int(rng.binomial(n, max(rate, holes.get(machine, 0.0))))
                tries[machine, user] = n, failed
    return tries


def test_chance_alone_names_a_machine_in_no_more_reports_than_is_said() -> None:
    rng = np.random.default_rng(5)
    reports, named = 400, 0
    for _ in range(reports):
        rates = {f"u{n}": float(rng.beta(0.3, 3.0)) for n in range(USERS)}
        jobs = int(rng.integers(1, 6))
        named += bool(black_holes(site(rng, rates, {}, jobs)))
    # ten or more of 400 at a chance of 1 %: 0.8 %
    assert named < 2.5 * ALPHA * reports, named


def test_black_holes_are_found_however_many_there_are() -> None:
    rng = np.random.default_rng(7)
    rates = {f"u{n}": 0.03 for n in range(USERS)}
    for many in (1, 15, 40):
        holes = dict.fromkeys(range(many), 0.9)
        found = {hole.machine for hole in black_holes(site(rng, rates, holes, 3))}
        assert found == set(holes), many


def test_a_user_whose_jobs_fail_everywhere_makes_no_black_hole() -> None:
    tries = {(machine, "good"): (20, 0) for machine in range(10)}
    tries |= {(machine, "broken"): (1, 1) for machine in range(9)}
    tries[9, "broken"] = (200, 200)
    assert black_holes(tries) == []


def test_jobs_of_one_user_alone_are_not_believed_where_there_are_others() -> None:
    tries = {(machine, "good"): (50, 0) for machine in range(10)}
    tries[3, "lonely"] = (30, 30)
    assert black_holes(tries) == []
    both = {**tries, (3, "good"): (50, 40)}
    assert [hole.machine for hole in black_holes(both)] == [3]


def test_what_is_told_of_a_black_hole_is_what_was_counted() -> None:
    tries = {(machine, user): (50, 1) for machine in range(10) for user in ("a", "b")}
    tries[4, "a"] = (50, 45)
    (hole,) = black_holes(tries | {(4, "b"): (50, 35)})
    assert (hole.machine, hole.tried, hole.failed, hole.users) == (4, 100, 80, 2)
    assert hole.low < 0.8
    assert 0.018 < hole.expected < 0.022


def test_a_site_where_nothing_ran_has_none() -> None:
    assert black_holes({}) == []
