"""Sections 4.1 to 4.3: what the states and the arms are at each level."""

import random
import tracemalloc
from collections import Counter
from typing import Any

import pytest

from outrider.api import COMPLETED_RUN, EVICTED_RUN, NOWHERE, Outcome
from tests.fixtures.plays import bandit
from tests.policies.views import HandView, chosen, outcome, waiting_job

DAY_S = 86_400.0
MACHINES, CLUSTERS, STATES = 1359, 37, 576


class RoomView(HandView):
    """A view with several machines a cluster: cluster c has numbers c * 100 and up."""

    def __init__(self, rooms: list[int], busy: tuple[int, ...] = ()) -> None:
        super().__init__(rooms, [50.0] * len(rooms))
        self.busy = set(busy)
        self.rooms = [[c * 100 + n for n in range(size)] for c, size in enumerate(rooms)]
        self.free_n = [len([m for m in room if self.is_free(m)]) for room in self.rooms]

    @property
    def members(self) -> list[list[int]]:
        return self.rooms

    @property
    def free_since(self) -> dict[int, float]:
        return {m: 0.0 for room in self.rooms for m in room if self.is_free(m)}

    def is_free(self, machine: int) -> bool:
        return machine not in self.busy

    def draw(self, rng: random.Random) -> int:
        return rng.choice(list(self.free_since))

    def draw_in(self, cluster: int, rng: random.Random) -> int:
        return rng.choice([m for m in self.rooms[cluster] if self.is_free(m)])


def ended(machine: int, ending: str, key: Any = 0) -> Outcome:
    return Outcome(1, key, machine, machine // 100, 0.0, 100.0, 100.0, ending)


@pytest.mark.parametrize("level", ["computer", "cluster", "system"])
def test_the_state_is_the_hour_of_day_and_the_hours_lost(level: str) -> None:
    policy, view = bandit(level=level), HandView([1], [50.0])
    for now in (13 * 3600.0, 13 * 3600.0 + 4 * DAY_S):
        view.now = now
        assert policy.group_key(waiting_job(longest_lost_s=7300.0), view) == 13 * 24 + 2


def test_by_the_week_the_same_hour_of_another_day_is_another_state() -> None:
    policy, view = bandit(level="cluster_week", epsilon=0.0), HandView([1, 1], [50.0] * 2)
    monday = policy.group_key(waiting_job(), view)
    view.now = 6 * DAY_S + 23 * 3600.0
    assert policy.group_key(waiting_job(longest_lost_s=1e6), view) == 168 * 24 - 1
    policy.observe(outcome(0, EVICTED_RUN, key=monday), view, True)
    view.now = DAY_S
    tuesday = policy.group_key(waiting_job(), view)
    assert policy.scores(monday, view)["c0"] < 0 == policy.scores(tuesday, view)["c0"]


def test_one_computer_of_a_room_can_be_good_and_its_neighbour_bad() -> None:
    policy, view = bandit(level="computer", epsilon=0.0), RoomView([2, 1])
    policy.observe(ended(0, EVICTED_RUN), view, True)
    policy.observe(ended(1, COMPLETED_RUN), view, True)
    assert set(chosen(policy, view)) == {1}
    scores = policy.scores(0, view)
    assert scores == pytest.approx(
        {"queue": 0.0, "c0 no. 0": -0.2, "c0 no. 1": 1.0, "c1 no. 100": 0.0}
    )


def test_a_busy_computer_is_not_chosen_however_good() -> None:
    policy, view = bandit(level="computer", epsilon=0.5), RoomView([2, 1], busy=(1,))
    policy.observe(ended(1, COMPLETED_RUN), view, True)
    assert set(chosen(policy, view)) == {0, 100, NOWHERE}


def test_exploring_by_computer_draws_computers_alike_not_rooms() -> None:
    policy, view = bandit(level="computer", epsilon=1.0), RoomView([9, 1])
    drawn = chosen(policy, view, n=11_000)
    assert len(drawn) == 11
    assert all(abs(n - 1000) < 150 for n in drawn.values()), drawn


def test_propensities_at_each_level_are_those_of_the_cluster() -> None:
    for level in ("computer", "cluster", "cluster_week", "system"):
        policy, view = bandit(level=level, epsilon=0.4), RoomView([3, 1])
        policy.observe(ended(1, COMPLETED_RUN), view, True)
        job = waiting_job()
        row = policy.evaluate_group(policy.group_key(job, view), view)
        said: dict[int, float] = {}
        drawn: Counter[int] = Counter()
        for _ in range(4000):
            choice = policy.choose(job, row, view, True)
            place = NOWHERE if choice.machine == NOWHERE else choice.machine // 100
            drawn[place] += 1
            assert choice.propensity is not None
            assert said.setdefault(place, choice.propensity) == choice.propensity
        assert sum(said.values()) == pytest.approx(1.0), level
        for place, propensity in said.items():
            assert drawn[place] / 4000 == pytest.approx(propensity, abs=0.04), (level, place)


def test_the_system_level_learns_only_whether_to_run() -> None:
    policy, view = bandit(level="system", epsilon=0.0), RoomView([2, 2])
    assert policy.scores(0, view) == {"queue": 0.0, "run": 0.0}
    policy.observe(ended(0, COMPLETED_RUN), view, True)
    assert set(chosen(policy, view)) == {0, 1, 100, 101}
    for _ in range(20):
        policy.observe(ended(100, EVICTED_RUN), view, True)
    assert set(chosen(policy, view)) == {NOWHERE}


def test_a_thousand_computers_in_all_states_take_room_only_where_they_were_tried() -> None:
    """Dense rows of 1,359 x 576 floats would take 19 MB for the values alone, boxed 60 MB."""
    policy = bandit(level="computer")
    view = RoomView([MACHINES // CLUSTERS] * CLUSTERS)
    tracemalloc.start()
    for state in range(STATES):
        for tried in range(10):
            policy.observe(ended((state + tried) % 30, COMPLETED_RUN, state), view, True)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 4e6, f"5,760 tried arms take {grown / 1e6:.1f} MB"


def test_a_row_of_computers_is_saved_by_number_and_found_again() -> None:
    policy, view = bandit(level="computer"), RoomView([2, 2])
    policy.observe(ended(1, COMPLETED_RUN), view, True)
    policy.observe(ended(100, EVICTED_RUN), view, True)
    again = bandit(level="computer")
    again.restore(policy.save(view), view)
    assert again.scores(0, view) == policy.scores(0, view)
    assert again.save(view) == policy.save(view)


@pytest.mark.parametrize("other", [{"level": "system"}, {"history_n": 5}])
def test_what_was_learned_otherwise_is_refused_and_nothing_changes(other: dict[str, Any]) -> None:
    policy, view = bandit(), HandView([1, 1], [50.0] * 2)
    policy.observe(outcome(1), view, True)
    fresh = bandit(**other)
    before = fresh.save(view)
    with pytest.raises(ValueError, match="another level or with another history"):
        fresh.restore(policy.save(view), view)
    assert fresh.save(view) == before


def test_a_snapshot_that_names_no_level_is_one_of_clusters() -> None:
    """Version 0.1 knew no other."""
    view, policy = HandView([1, 1], [50.0] * 2), bandit()
    old = {"clusters": ["c1", "c0"], "kept": [], "rows": [[0, [[0.0, 3.0, -1.0], [0.0, 4, 2]]]]}
    policy.restore(old, view)
    assert policy.scores(0, view) == {"queue": 0.0, "c0": -0.5, "c1": 0.75}
