"""Closures by owners in the coming days: changes of CPUs, and the jobs that wait for them."""

import numpy as np
import pytest

from outrider.forecast.closures import (
    NOTHING_CLOSED,
    OWNER,
    Changes,
    Closure,
    ClosureHistory,
    RecentClosures,
    draw_changes,
)
from outrider.forecast.expected_starts import KNOWN_DISCIPLINES, simulated_starts
from outrider.forecast.queue_state import NO_ARRIVALS, Jobs, QueueState
from outrider.model import events as ev
from outrider.model.localtime import DAY_S
from outrider.model.modes import Discipline

NOW_S = 100 * DAY_S
HOUR_S = 3_600.0
NO_DAYS = np.empty((1, 0))


def rng() -> np.random.Generator:
    return np.random.default_rng(0)


def changes_of(changes: Changes, replicate: int = 0) -> list[tuple[float, float]]:
    """Return (seconds from now, CPUs) of the changes of one replicate."""
    rows = slice(*changes.first[replicate : replicate + 2])
    return list(
        zip((changes.at_s[rows] - NOW_S).tolist(), changes.cpus[rows].tolist(), strict=True)
    )


def session(machine: int, days_ago: float, hours: float) -> Closure:
    from_s = NOW_S - days_ago * DAY_S
    return Closure(machine, from_s, from_s + hours * HOUR_S, OWNER)


def test_where_no_machine_was_closed_nothing_changes() -> None:
    changes = draw_changes(NOW_S, NOTHING_CLOSED, np.full((3, 2), DAY_S), rng())
    assert changes.first.tolist() == [0, 0, 0, 0]
    assert len(changes.at_s) == 0


def test_a_machine_that_is_kept_comes_back_when_its_owner_has_left_so_late_before() -> None:
    ended = [session(1, 2 + n, 3.0) for n in range(5)] + [session(1, 20, 1.0), session(2, 9, 40.0)]
    since_s = NOW_S - 2 * HOUR_S
    history = ClosureHistory(NOW_S - 30 * DAY_S, ended, [(1, since_s, OWNER)], {1: 4, 2: 1})
    # its sessions of more than two hours took three; the other machine's do not count
    assert changes_of(draw_changes(NOW_S, history, NO_DAYS, rng())) == [(HOUR_S, 4.0)]


def test_a_machine_with_few_sessions_goes_by_those_of_others() -> None:
    history = ClosureHistory(
        NOW_S - 30 * DAY_S, [session(2, 3, 5.0)], [(1, NOW_S - HOUR_S, OWNER)], {1: 1, 2: 1}
    )
    assert changes_of(draw_changes(NOW_S, history, NO_DAYS, rng())) == [(4 * HOUR_S, 1.0)]


def test_sessions_of_a_past_day_come_again_at_their_hour() -> None:
    ended = sorted([session(1, 2.75, 2.0), session(1, 1.5, 1.0)], key=lambda one: one.from_s)
    history = ClosureHistory(NOW_S - 30 * DAY_S, ended, [], {1: 2})
    days = np.array([[3 * DAY_S, 3 * DAY_S]])  # the day three days ago, then that after it
    assert changes_of(draw_changes(NOW_S, history, days, rng())) == [
        (6 * HOUR_S, -2.0), (8 * HOUR_S, 2.0), (36 * HOUR_S, -2.0), (37 * HOUR_S, 2.0),
    ]  # fmt: skip


def test_a_session_that_lasts_still_is_one_of_yesterdays_block() -> None:
    ended = [session(1, 9, 7.0)]
    history = ClosureHistory(NOW_S - 30 * DAY_S, ended, [(1, NOW_S - 6 * HOUR_S, OWNER)], {1: 1})
    assert changes_of(draw_changes(NOW_S, history, np.array([[DAY_S]]), rng())) == [
        (HOUR_S, 1.0), (18 * HOUR_S, -1.0), (25 * HOUR_S, 1.0),
    ]  # fmt: skip


def test_sessions_of_one_machine_that_overlap_are_one() -> None:
    ended = sorted([session(1, 3, 30.0), session(1, 1.5, 1.0)], key=lambda one: one.from_s)
    history = ClosureHistory(NOW_S - 30 * DAY_S, ended, [], {1: 1})
    days = np.array([[3.5 * DAY_S, 2.5 * DAY_S]])
    assert changes_of(draw_changes(NOW_S, history, days, rng())) == [
        (12 * HOUR_S, -1.0), (42 * HOUR_S, 1.0),
    ]  # fmt: skip


def test_a_machine_that_is_drained_or_leaves_comes_back_by_no_habit() -> None:
    closures = RecentClosures()
    for machine in range(4):
        closures.watch((0.0, ev.OWNER_CAME, machine, None))
        closures.watch((60.0, ev.USABLE, machine, None))
    closures.watch((90.0, ev.DRAINED, 0, None))
    for machine in range(4):
        closures.watch((100.0, ev.OWNER_CAME, machine, None))
    closures.watch((110.0, ev.LEFT, 1, None))
    closures.watch((120.0, ev.REBOOTED, 2, None))
    assert closures.kept() == [(2, 100.0, OWNER), (3, 100.0, OWNER)]
    assert [one.machine for one in closures.recurring()] == [2, 3]
    closures.watch((200.0, ev.USABLE, 1, None))
    assert [one.machine for one in closures.recurring()] == [1, 2, 3]


@pytest.mark.parametrize("seed", range(5))
def test_no_machine_is_gone_twice_or_there_twice(seed: int) -> None:
    chance = np.random.default_rng(seed)
    machines = {n: int(chance.integers(1, 5)) for n in range(12)}
    ended = [
        session(int(chance.integers(12)), float(chance.uniform(0.5, 14)), chance.exponential(6))
        for _ in range(300)
    ]
    kept = [(n, NOW_S - float(chance.uniform(60, 7200)), OWNER) for n in range(4)]
    history = ClosureHistory(
        NOW_S - 20 * DAY_S, sorted(ended, key=lambda one: one.from_s),
        sorted(kept, key=lambda one: one[1]), machines,
    )  # fmt: skip
    days = (chance.integers(1, 15, (6, 28)) + np.arange(28)).astype(np.float64) * DAY_S
    changes = draw_changes(NOW_S, history, days, chance)
    open_cpus = sum(cpus for n, cpus in machines.items() if n >= 4)
    for replicate in range(6):
        rows = slice(*changes.first[replicate : replicate + 2])
        there = open_cpus + np.cumsum(changes.cpus[rows])
        assert len(there) > 100
        assert (np.diff(changes.at_s[rows]) > 0).all()
        assert (changes.at_s[rows] > NOW_S).all()
        assert there.min() >= 0
        assert there.max() <= sum(machines.values())
        assert there[-1] == sum(machines.values()), "after the last day all are open"


def forward(
    discipline: Discipline,
    ends_s: list[float],
    waiting: int,
    changes: list[tuple[float, float]],
    free: int = 0,
    ends_runs: bool = False,
) -> list[float]:
    """Return starts of jobs of one CPU that ask for and run five hours, seconds from now."""
    total = 10

    def jobs(n: int) -> Jobs:
        hours = np.full(n, 5 * HOUR_S)
        return Jobs(np.ones(n, np.int64), hours, hours, np.zeros((n, 5), np.int64))

    state = QueueState(
        NOW_S,
        0.0,
        free,
        total,
        jobs(len(ends_s)),
        NOW_S - 5 * HOUR_S + np.array(ends_s),
        jobs(waiting),
    )
    run_s = np.full((2, len(ends_s) + waiting), 5 * HOUR_S)
    at_s, cpus = np.array(changes).reshape(-1, 2).T
    # of two replicates the first has none of them
    known_changes = Changes(NOW_S + at_s, cpus, np.array([0, 0, len(at_s)]), ends_runs)
    same = (state, run_s, NO_ARRIVALS, np.empty((2, 0)), discipline)
    starts_s = simulated_starts(*same, changes=known_changes)
    assert starts_s[0].tolist() == simulated_starts(*same)[0].tolist()
    seconds: list[float] = (starts_s[1] - NOW_S).tolist()
    return seconds


@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_a_job_starts_where_an_owner_leaves(discipline: Discipline) -> None:
    assert forward(discipline, [HOUR_S], 3, [(600.0, 1.0), (1200.0, 1.0)]) == [
        600.0,
        1200.0,
        HOUR_S,
    ]


@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_who_an_owner_evicts_is_the_first_to_start_again(discipline: Discipline) -> None:
    # two run; an owner comes in between: the first end is for the one that was evicted
    assert forward(discipline, [HOUR_S, 2 * HOUR_S], 1, [(600.0, -1.0)]) == [2 * HOUR_S]


@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_where_the_evicted_wait_behind_all_others_the_next_end_is_for_who_waits(
    discipline: Discipline,
) -> None:
    starts_s = forward(discipline, [HOUR_S, 2 * HOUR_S], 1, [(600.0, -1.0)], ends_runs=True)
    assert starts_s == [HOUR_S]
    nobody_left = [(600.0, -2.0), (900.0, 1.0)]
    assert forward(discipline, [HOUR_S, 2 * HOUR_S], 1, nobody_left, ends_runs=True) == [900.0]


@pytest.mark.parametrize("discipline", KNOWN_DISCIPLINES)
def test_a_free_machine_that_its_owner_takes_starts_nobody(discipline: Discipline) -> None:
    starts_s = forward(discipline, [HOUR_S], 3, [(600.0, -1.0), (1200.0, 1.0)], free=1)
    assert starts_s == [0.0, HOUR_S, 5 * HOUR_S]
    assert forward(discipline, [], 1, [(600.0, -1.0)]) == [np.inf]
