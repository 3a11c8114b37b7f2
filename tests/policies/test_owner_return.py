"""Hazards of owners' returns: levels, regimes, frailties, and the hours that they rest on."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from outrider_policies.survival.hosts import Absence, Frailty
from outrider_policies.survival.owner_return import WEEK_H, OwnerReturn, cumulative
from tests.suite.examples import examples

Floats = NDArray[np.float64]
HOURS = np.arange(WEEK_H)
BY_DAY = np.where((HOURS % 24 >= 9) & (HOURS % 24 < 17), 0.8, 0.02)
WEEKDAYS = np.where(HOURS < 120, BY_DAY, 0.01)
TRUE = np.stack([WEEKDAYS, 0.3 * WEEKDAYS])


def watch(
    owners: OwnerReturn, weeks: int, seed: int, busy: float = 1.0, machines_n: int = 40
) -> OwnerReturn:
    """Weeks of Poisson log-ins at `busy` x TRUE, on so many free machines a cluster."""
    rng = np.random.default_rng(seed)
    owners.grow(len(TRUE))
    for _ in range(weeks):
        levels = owners.levels()
        for hour in range(WEEK_H):
            exposed = np.full(len(TRUE), float(machines_n))
            came = rng.poisson(busy * TRUE[:, hour] * machines_n).astype(np.float64)
            owners.take(hour, came, exposed, levels[:, hour])
    return owners


def hazards(owners: OwnerReturn) -> Floats:
    found: Floats = owners.levels() * owners.regime()[:, None]
    return found


def test_hazards_of_a_steady_habit_are_found() -> None:
    found = hazards(watch(OwnerReturn(0.9, 20.0, 72.0), 10, 1))
    noon = 12 + 24 * np.arange(5)
    assert found[:, noon].mean(axis=1) == pytest.approx([0.8, 0.24], rel=0.1)
    assert (found[:, 130:] < 0.05).all(), "nobody comes on Sundays"


def test_before_anybody_came_all_clusters_are_alike() -> None:
    owners = OwnerReturn(0.9, 20.0, 72.0)
    owners.grow(3)
    assert hazards(owners) == pytest.approx(np.full((3, WEEK_H), 0.1))


def test_a_new_cluster_is_taken_for_one_like_the_others() -> None:
    owners = watch(OwnerReturn(0.9, 20.0, 72.0), 6, 2)
    owners.grow(3)
    found = hazards(owners)
    assert found[1, 12] < found[2, 12] < found[0, 12]
    assert found[2, 12] > 10 * found[2, 3]


def test_the_regime_of_one_cluster_is_that_of_all_at_its_place() -> None:
    owners = watch(OwnerReturn(0.9, 20.0, 72.0), 1, 8, busy=0.3)
    assert [owners.regime_of(cluster) for cluster in (0, 1)] == owners.regime().tolist()


def test_a_vacation_is_followed_and_does_not_wash_out_the_week() -> None:
    noon, night = 12 + 24 * np.arange(5), 3 + 24 * np.arange(5)
    owners = watch(OwnerReturn(0.9, 20.0, 72.0), 8, 3)
    term = owners.levels()
    watch(owners, 6, 4, busy=0.15)
    assert hazards(owners)[:, noon].mean(axis=1) == pytest.approx([0.12, 0.036], rel=0.25)
    week, before = owners.levels()[0], term[0]
    contrast = week[noon].mean() / week[night].mean()
    assert contrast == pytest.approx(before[noon].mean() / before[night].mean(), rel=0.4)
    watch(owners, 1, 5)
    assert hazards(owners)[:, noon].mean(axis=1) == pytest.approx([0.8, 0.24], rel=0.25)


def test_habits_that_change_are_learned_anew() -> None:
    owners = watch(OwnerReturn(0.8, 20.0, 72.0), 8, 6)
    rng = np.random.default_rng(7)
    for _ in range(12):
        levels = owners.levels()
        for hour in range(WEEK_H):
            true = np.roll(TRUE, 12, axis=1)[:, hour]
            came = rng.poisson(true * 40.0).astype(np.float64)
            owners.take(hour, came, np.full(2, 40.0), levels[:, hour])
    found = hazards(owners)
    assert found[0, 24] > 5 * found[0, 36], "owners come at midnight now, not at noon"


@settings(max_examples=examples(50))
@given(
    from_h=st.floats(0.0, 167.99),
    ahead_h=st.lists(st.floats(0.0, 700.0), min_size=1, max_size=5).map(sorted),
    seed=st.integers(0, 99),
)
def test_cumulative_hazard_is_the_sum_of_its_parts(
    from_h: float, ahead_h: list[float], seed: int
) -> None:
    levels = np.random.default_rng(seed).random((2, WEEK_H))
    found = cumulative(levels, from_h, np.array(ahead_h))
    for column, ahead in enumerate(ahead_h):
        total = np.zeros(2)
        at, end = from_h, from_h + ahead
        while at < end:
            step = min(np.floor(at) + 1.0, end)
            total += levels[:, int(at) % WEEK_H] * (step - at)
            at = step
        assert found[:, column] == pytest.approx(total, abs=1e-6)


@settings(max_examples=examples(100))
@given(
    st.lists(st.tuples(st.floats(0.0, 7199.0), st.integers(0, 3)), max_size=20).map(sorted),
)
def test_hours_without_an_owner_add_up_to_what_was_seen(notes: list[tuple[float, int]]) -> None:
    """Each note turns a machine's state around, so that owners come and go in turns."""
    absence = Absence()
    here = [False] * 4
    since, absent_s, came = [0.0] * 4, np.zeros(4), np.zeros(4)
    found_h, found_came = np.zeros(4), np.zeros(4)
    for end_s in (3600.0, 7200.0):
        for time_s, machine in notes:
            if end_s - 3600.0 <= time_s < end_s:
                if here[machine]:
                    since[machine] = time_s
                else:
                    absent_s[machine] += time_s - since[machine]
                    came[machine] += 1
                here[machine] = not here[machine]
                absence.note(time_s, machine, here[machine])
                assert absence.is_present(machine) is here[machine]
        logins, hours = absence.add_up(end_s - 3600.0, end_s, 4)
        found_h += hours
        found_came += logins
        assert [absence.is_present(machine) for machine in range(4)] == here
    absent_s += [0.0 if sits else 7200.0 - went for sits, went in zip(here, since, strict=True)]
    assert found_h * 3600.0 == pytest.approx(absent_s, abs=1e-3)
    assert (found_came == came).all()


def test_a_machine_is_frail_where_it_is_interrupted_more_than_expected() -> None:
    frailty = Frailty(shape=1.3)
    frailty.grow(3)
    frailty.expected += 10.0
    frailty.interruptions += np.array([0.0, 10.0, 40.0])
    assert frailty.means() == pytest.approx([1.3 / 11.3, 1.0, 41.3 / 11.3])
    frailty.grow(4)
    assert frailty.means()[3] == 1.0, "of a new machine nothing is known"


def test_frailty_is_forgotten() -> None:
    frailty = Frailty(shape=1.3)
    frailty.grow(1)
    frailty.interruptions += 20.0
    before = frailty.means()[0]
    for _ in range(30):
        frailty.forget(0.9)
    assert before > 10.0
    assert 1.0 < frailty.means()[0] < 2.0
