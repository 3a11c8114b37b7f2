"""Sums of changes that are recorded and evaluated later, equal to those booked immediately."""

import datetime as dt
from typing import Final

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.accounting import energy
from outrider.engine.accounting.energy import EnergyStatistics, MeteredEnergy
from outrider.engine.accounting.machine_power import ASLEEP, GONE, IDLING, OWNED, MachinePower
from outrider.model.localtime import LocalTime, TraceTime, ZoneTime
from outrider.model.machines import ClusterSpec, MachineSpec, OpeningHours
from tests.suite.examples import examples

CLOCK: Final = TraceTime(dt.datetime.fromisoformat("2010-01-05T14:00:00"))
CLUSTERS: Final = (
    ClusterSpec("lab", OpeningHours("mon-fri 09:00-17:00"), 1800.0, 600.0),
    ClusterSpec("never sleeps"),
)
MACHINES: Final = (
    (0, MachineSpec("lab", 4, 101.3, 50.7, 3.1)),
    (0, MachineSpec("lab", 3, 90.0, 40.0, 2.0)),
    (1, MachineSpec("never sleeps", 1, 77.7, 33.3, 1.1)),
)
CHANGES: Final = st.lists(
    st.tuples(
        st.integers(0, 2),
        st.sampled_from((GONE, IDLING, OWNED, ASLEEP, "work", "work", "rest", "rest", "settle")),
        st.integers(1, 2),
        st.sampled_from((0.0, 7.3, 599.9, 600.0, 1234.5, 9000.0)),
        st.booleans(),
    ),
    max_size=60,
)


def book_of_all() -> EnergyStatistics:
    """A book that three machines have joined."""
    made = EnergyStatistics(CLOCK)
    for m, (cluster, spec) in enumerate(MACHINES):
        made.join(m, spec, cluster, CLUSTERS[cluster])
    return made


def tell(book: EnergyStatistics, m: int, what: int | str, cpus: int, now: float) -> None:
    """Apply one change to a book."""
    if what == "work":
        book.work(m, 0, cpus, now)
    elif what == "rest":
        book.rest(m, cpus, now)
    elif isinstance(what, int):
        book.enter(m, what, now)
    else:
        book.settle(m, now)


class AtOnce:
    """The same machines, booked change by change, as those with a meter are."""

    def __init__(self) -> None:
        self.book = MeteredEnergy(energy.PURPOSES, self._sleeps_at)
        for column in self.book.joules.values():
            column.extend((0.0, 0.0))
        self.machines = [MachinePower() for _ in MACHINES]
        for machine, (cluster, spec) in zip(self.machines, MACHINES, strict=True):
            machine.describe(spec, cluster)

    def _sleeps_at(self, cluster: int, now: float) -> float:
        return now + CLUSTERS[cluster].sleep_after_s(CLOCK.week_second(now))

    def tell(self, m: int, what: int | str, cpus: int, now: float) -> None:
        """Apply one change to a machine of the book."""
        machine = self.machines[m]
        if what == "work":
            self.book.work(machine, 0, cpus, now)
        elif what == "rest":
            self.book.rest(machine, cpus, now)
        elif isinstance(what, int):
            self.book.enter(machine, what, now)
        else:
            self.book.settle(machine, now)


@settings(max_examples=examples(300), derandomize=True)
@given(changes=CHANGES)
def test_noted_changes_give_the_same_sums_whenever_somebody_looks(
    changes: list[tuple[int, int | str, int, float, bool]],
) -> None:
    seldom, often, at_once = book_of_all(), book_of_all(), AtOnce()
    now = 0.0
    for m, what, cpus, seconds, looked in changes:
        now += seconds
        if what != "rest" or at_once.machines[m].busy >= cpus:
            at_once.tell(m, what, cpus, now)
            tell(seldom, m, what, cpus, now)
            tell(often, m, what, cpus, now)
        if looked:
            assert often.is_asleep(m, now) == at_once.machines[m].is_asleep(now)
    assert often.save() == seldom.save()
    for purpose, column in seldom.joules.items():
        assert column == pytest.approx(at_once.book.joules[purpose], rel=1e-12, abs=1e-9)


def test_a_full_log_is_worked_out_unasked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(energy, "_BATCH", 9)
    small = book_of_all()
    for turn in range(100):
        small.enter(0, OWNED if turn % 2 else IDLING, 10.0 * turn)
    monkeypatch.undo()
    large = book_of_all()
    for turn in range(100):
        large.enter(0, OWNED if turn % 2 else IDLING, 10.0 * turn)
    assert small.save() == large.save()


def test_what_a_machine_is_told_to_draw_anew_holds_from_then_on() -> None:
    made = book_of_all()
    made.enter(2, OWNED, 0.0)
    made.settle(2, 10.0)
    made.join(2, MachineSpec("never sleeps", 1, 1.0, 1.0, 1.0), 1, CLUSTERS[1])
    made.enter(2, OWNED, 10.0)
    made.settle(2, 20.0)
    assert made.joules["owner"] == pytest.approx([0.0, 77.7 * 10 + 1.0 * 10])


@pytest.mark.parametrize("clock", [CLOCK, ZoneTime("Europe/Berlin")])
def test_many_times_are_told_as_one_by_one(clock: LocalTime) -> None:
    times_s = np.random.default_rng(1).uniform(1.2e9, 1.4e9, 500)
    assert clock.week_seconds(times_s).tolist() == [clock.week_second(t) for t in times_s.tolist()]
