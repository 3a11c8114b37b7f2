"""Free machines, since when each is free, and random draws, against brute force."""

import datetime as dt
import random
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.state.availability import Availability
from outrider.engine.state.site import Site
from outrider.model.localtime import TraceTime
from outrider.model.machines import MachineSpec
from tests.suite.examples import examples

MACHINES = 5


def make_site(clusters: list[str]) -> Site:
    """Machines in these clusters, all shut."""
    site = Site(TraceTime(dt.datetime.fromisoformat("2010-01-04T00:00:00")), [])
    for machine, cluster in enumerate(clusters):
        site.join(machine, MachineSpec(cluster=cluster))
    return site


steps = st.lists(st.tuples(st.integers(0, 3), st.integers(0, MACHINES - 1)), max_size=60)


@settings(max_examples=examples(300), derandomize=True)
@given(steps=steps, asked=st.lists(st.tuples(st.integers(0, 90), st.integers(0, 40)), max_size=20))
def test_left_alone_is_what_a_list_of_all_stretches_says(
    steps: list[tuple[int, int]], asked: list[tuple[int, int]]
) -> None:
    """Times step by 0 to 3; every step opens a shut machine or shuts an open one."""
    site = make_site(["c"] * MACHINES)
    since: dict[int, float] = {}
    whole: list[tuple[float, float]] = []
    for step, machine in steps:
        site.now += step
        if machine in since:
            site.shut(machine)
            whole.append((since.pop(machine), site.now))
        else:
            site.open_machine(machine)
            since[machine] = site.now
    now = site.now
    whole = [(start, end) for start, end in whole if start < end]
    whole += [(start, now) for start in since.values()]
    for start, length in asked:
        end = start + length
        if end > now:
            continue
        expected = any(left <= start and end <= right for left, right in whole)
        assert site.was_available(start, end) == expected, (start, end, whole)
    if since:
        assert site.free_since[site.longest_free()] == min(since.values())
    else:
        with pytest.raises(LookupError):
            site.longest_free()


def test_a_stretch_of_no_length_answers_nothing() -> None:
    seen = Availability()
    seen.begin(0, 5.0)
    seen.end(0, 5.0)
    assert not seen.lasted(5.0, 5.0, 6.0)


def test_jobs_on_a_machine_do_not_end_the_stretch_in_which_it_is_left_alone() -> None:
    site = make_site(["c"])
    site.open_machine(0)
    site.now = 10.0
    site.take(0, 1)
    site.now = 20.0
    site.give_back(0, 1)
    site.now = 30.0
    site.shut(0)
    assert site.was_available(0.0, 30.0)
    assert not site.was_available(0.0, 30.5)


def chi_square(counts: Counter[int], arms: list[int], draws: int) -> float:
    expected = draws / len(arms)
    assert set(counts) <= set(arms)
    return sum((counts[arm] - expected) ** 2 / expected for arm in arms)


@pytest.mark.parametrize("free", [list(range(0, 200, 2)), [3, 77, 199], list(range(200))])
def test_a_draw_is_uniform_over_free_machines(free: list[int]) -> None:
    site = make_site([f"c{machine % 3}" for machine in range(200)])
    for machine in free:
        site.open_machine(machine)
    rng, draws = random.Random(4), 60 * len(free)
    over_all = Counter(site.draw(rng) for _ in range(draws))
    degrees = max(1, len(free) - 1)
    bound = degrees + 5 * (2 * degrees) ** 0.5 + 5
    assert chi_square(over_all, free, draws) < bound
    for cluster in range(3):
        members = [machine for machine in free if site.cluster_of(machine) == cluster]
        if not members:
            with pytest.raises(LookupError):
                site.draw_in(cluster, rng)
            continue
        within = Counter(site.draw_in(cluster, rng) for _ in range(60 * len(members)))
        assert chi_square(within, members, 60 * len(members)) < bound


@settings(max_examples=examples(100), derandomize=True)
@given(usable=st.sets(st.integers(0, 9), min_size=1), n=st.integers(1, 10), seed=st.integers(0, 99))
def test_reserving_and_giving_back_restores_the_site_exactly(
    usable: set[int], n: int, seed: int
) -> None:
    site = make_site([f"c{machine % 3}" for machine in range(10)])
    for machine in sorted(usable):
        site.open_machine(machine)
    before, rng = site.save(), random.Random(seed)
    counts = (list(site.free_n), site.free_total)
    taken: list[int] = []
    while len(taken) < min(n, len(usable)):
        taken.append(site.draw(rng))
        site.reserve(taken[-1], 1)
        assert site.free_total == len(usable) - len(taken) == sum(site.free_n)
    assert len(set(taken)) == len(taken)
    if len(taken) == len(usable):
        with pytest.raises(LookupError):
            site.draw(rng)
    site.end_reservations()
    assert site.save() == before
    assert (site.free_n, site.free_total) == counts


def test_where_no_machine_is_free_nothing_is_drawn_and_no_chance_is_spent() -> None:
    site = make_site(["a", "a", "b"])
    site.open_machine(2)
    rng = random.Random(7)
    before = rng.getstate()
    with pytest.raises(LookupError):
        site.draw_in(0, rng)
    assert rng.getstate() == before, "else the stream would depend on who was asked in vain"
    assert site.draw_in(1, rng) == 2
    site.shut(2)
    before = rng.getstate()
    with pytest.raises(LookupError):
        site.draw(rng)
    assert rng.getstate() == before


def test_the_cpus_that_are_open_are_those_of_machines_where_jobs_may_run_free_or_not() -> None:
    site = make_site([])
    for machine, cpus in enumerate((1, 8, 16)):
        site.join(machine, MachineSpec("c0", cpus=cpus))
    assert site.open_cpus == 0, "none is usable yet"
    for machine in (0, 1, 2):
        site.open_machine(machine)
        site.open_machine(machine)
    site.take(1, 8)
    assert site.open_cpus == 25
    site.shut(1)
    site.shut(1)
    site.join(2, MachineSpec("c0", cpus=4))
    assert site.open_cpus == 1
    site.open_machine(2)
    site.leave(0)
    assert site.open_cpus == 4 == sum(map(site.cpus_of, range(site.machines_n)))
    other = make_site([])
    other.restore(site.save())
    assert other.open_cpus == 4
