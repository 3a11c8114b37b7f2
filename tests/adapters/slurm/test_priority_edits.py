"""Planned priorities of jobs, by the clock: without a Slurm."""

from typing import Any

import pytest

from outrider.api import PeerError, UndoLog
from outrider_adapters.slurm.acting.controller import WaitingJob
from outrider_adapters.slurm.acting.priority_edits import (
    Age,
    PriorityEdits,
    Wanted,
    check_can_be_changed,
    lost_age,
    raise_above,
)

DAY_S = 86_400.0
AGE = Age(weight=1_000, most_s=10 * DAY_S, step=10)
T = 1_000_000_000.0
JOB = "c:1"
MULTIFACTOR = {
    "PriorityType": "priority/multifactor",
    "PriorityWeightAge": "1000",
    "PriorityWeightPartition": "10000",
    "PriorityWeightTRES": "CPU=2000,Mem=500.5",
    "PriorityMaxAge": "7-00:00:00",
    "AccountingStorageEnforce": "associations,limits",
}


class Desk:
    """Site factors of one job, as a passive batch system would store them."""

    def __init__(self, factor: int = 0, **more: Any) -> None:
        self.edits = PriorityEdits("site_factor", UndoLog(), 300.0, **more)
        self.factor = factor

    def give(self, at_s: float, **wanted: Any) -> int:
        """Apply what is wanted at a time, and return the value after it."""
        waiting = {JOB: WaitingJob(at_s, at_s, 0, self.factor)}
        plan = self.edits.wanted({JOB: Wanted(**wanted)}, waiting, at_s)
        assert not plan.refused, plan.refused
        self.edits.undo_log.write(plan.notes)
        self.factor = plan.values.get(JOB, self.factor)
        self.edits.settle(plan.notes)
        return self.factor

    @property
    def until_s(self) -> float | None:
        noted = self.edits.undo_log.entries.get(JOB)
        return None if noted is None else noted.until_s


def test_age_is_given_back_until_it_is_real_again() -> None:
    """Defer a job of two days for one: a tenth of the weight is missing for ten days."""
    desk = Desk(7, age=AGE)
    began_s = T + 2 * DAY_S
    assert desk.give(began_s, starts_s=began_s + DAY_S, since_s=T) == 7 + 300
    assert desk.until_s == T + 10 * DAY_S, "until its true age would be the greatest"
    assert desk.give(T + 3 * DAY_S) == 7 + 300
    assert desk.give(T + 10 * DAY_S) == 7 + 300
    assert desk.give(T + 11.5 * DAY_S) == 7 + 150, "the rest has grown again"
    assert desk.until_s == pytest.approx(T + 11.5 * DAY_S + 0.1 * DAY_S), "a step later it is less"
    assert desk.give(T + 13 * DAY_S) == 7
    assert not desk.edits.undo_log.entries


def test_a_deferral_that_goes_on_takes_more_and_is_counted_from_the_first() -> None:
    desk = Desk(age=AGE)
    assert desk.give(T + DAY_S, starts_s=T + 1.1 * DAY_S, since_s=T) == 110
    assert desk.give(T + 1.1 * DAY_S, starts_s=T + 1.5 * DAY_S) == 150
    assert desk.give(T + 1.4 * DAY_S, starts_s=T + 1.4 * DAY_S) == 140, "released early"
    assert desk.give(T + 2 * DAY_S, starts_s=T + 2.5 * DAY_S, since_s=T + 1.4 * DAY_S) == 250


def test_what_is_missing_is_rounded_to_steps() -> None:
    desk = Desk(age=AGE)
    assert desk.give(T, starts_s=T + 300, since_s=T) == 0
    assert desk.until_s is not None, "it is remembered all the same"
    assert desk.give(T + 300, starts_s=T + 0.16 * DAY_S) == 20


def test_a_raise_and_age_are_taken_back_each_in_its_time() -> None:
    desk = Desk(5, raise_by=5_000, age=AGE)
    desk.give(T + DAY_S, starts_s=T + DAY_S, since_s=T)
    assert desk.give(T + DAY_S, raised=True) == 5 + 100 + 5_000
    assert desk.until_s == T + DAY_S + 300.0, "the raise is to be renewed"
    assert desk.edits.overdue(T + DAY_S + 299.0) == []
    assert desk.edits.overdue(T + DAY_S + 300.0) == [JOB]
    assert desk.give(T + DAY_S + 300.0) == 5 + 100
    assert desk.give(T + DAY_S + 300.0, keeps_age=False) == 5
    assert not desk.edits.undo_log.entries


def test_what_was_noted_and_never_done_is_done_the_next_time() -> None:
    desk = Desk(5, raise_by=100)
    waiting = {JOB: WaitingJob(T, T, 0, 5)}
    desk.edits.undo_log.write(desk.edits.wanted({JOB: Wanted(raised=True)}, waiting, T).notes)
    assert desk.factor == 5, "the daemon died before it asked"
    assert desk.give(T + 10, raised=True) == 105


def test_a_job_whose_site_factor_is_not_told_is_not_raised() -> None:
    edits = PriorityEdits("site_factor", UndoLog(), 300.0, raise_by=100)
    plan = edits.wanted({JOB: Wanted(raised=True)}, {JOB: WaitingJob(T, T, 0, None)}, T)
    assert not any(plan)


@pytest.mark.parametrize(
    "more",
    [
        {"AccountingStorageEnforce": "associations"},
        {"PriorityFlags": "ACCRUE_ALWAYS,FAIR_TREE"},
        {"PriorityWeightAge": "0"},
        {"PriorityType": "priority/basic"},
    ],
)
def test_age_is_lost_only_where_slurm_counts_it_anew(more: dict[str, str]) -> None:
    assert lost_age(MULTIFACTOR, 300.0) == Age(1000, 7 * DAY_S, 1)
    assert lost_age(MULTIFACTOR | more, 300.0) is None


def test_a_raise_is_above_all_weights_together() -> None:
    assert raise_above(MULTIFACTOR) == 1000 + 10000 + 2000 + 500 + 1
    assert raise_above({}) == 1_000


def test_what_this_slurm_cannot_do_is_said() -> None:
    with pytest.raises(PeerError, match="and this Slurm has priority/basic"):
        check_can_be_changed({"PriorityType": "priority/basic"}, 'order_by = "nice"')
    plugged = MULTIFACTOR | {"PrioritySiteFactorPlugin": "site_factor/lua"}
    check_can_be_changed(plugged, 'order_by = "nice"')
    with pytest.raises(PeerError, match="and this Slurm has site_factor/lua write it"):
        check_can_be_changed(plugged, 'order_by = "site_factor"')
