"""Measured watts stand for the table's while a reading holds, and every joule says which it is."""

from math import inf, isnan, nan

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine.accounting.energy import PURPOSES
from outrider.engine.accounting.machine_power import METER_VALID_S
from outrider.engine.accounting.report import energy_measured_wh, energy_wh
from outrider.engine.engine import Engine
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.service.core.guarded_feed import is_well_formed
from tests.engine.accounting.metered import Table, joined, metered_engine, play
from tests.suite.examples import examples

TABLE: Table = (100.0, 50.0, 5.0)
WHAT = ("start", "complete", "evict", "suspend", "resume", "owner", "asleep", "read")
steps = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 60, 300, 899, 900, 901, 1300, 4000]),
        st.sampled_from(WHAT) | st.just("read") | st.just("start"),
        st.sampled_from([0.0, 3.0, 40.0, 130.5]),
    ),
    max_size=25,
)
thorough = settings(max_examples=examples(400), derandomize=True)


def told(events: list[Event], until_s: float) -> Engine:
    """Return an engine that received these events, at a later moment."""
    engine = metered_engine()
    engine.feed(events)
    engine.finish(until_s)
    return engine


def joules(engine: Engine) -> tuple[dict[str, float | None], dict[str, float]]:
    """Return the joules by purpose: all, and the measured part."""
    whole = energy_wh(engine.accounting, engine.site)
    measured = energy_measured_wh(engine.accounting, engine.site)
    return (
        {p: None if wh is None else wh * 3600.0 for p, wh in whole.items()},
        {p: wh * 3600.0 for p, wh in measured.items()},
    )


def started(time_s: float, job: int = 1, cpus: int = 1) -> list[Event]:
    """Return the events of a job that is submitted and starts on machine 0."""
    return [(time_s, ev.SUBMITTED, job, JobSpec()), (time_s, ev.STARTED, job, (0, cpus))]


@thorough
@given(cpus=st.sampled_from([1, 2, 3, 4]), steps=steps)
def test_every_purpose_is_the_integral_of_measured_watts_else_table_watts(
    cpus: int, steps: list[tuple[int, str, float]]
) -> None:
    events, truth = play(TABLE, cpus, steps)
    truth.pass_until(truth.now + 700.0)
    engine = told(events, truth.now)
    for job in list(truth.runs):
        truth.end(job, "open")
    whole, measured = joules(engine)
    assert whole == pytest.approx({p: truth.joules.get(p, 0.0) for p in PURPOSES}, abs=1e-6)
    assert measured == pytest.approx({p: truth.measured.get(p, 0.0) for p in PURPOSES}, abs=1e-6)


@thorough
@given(cpus=st.sampled_from([1, 2, 3, 4]), steps=steps)
def test_without_a_table_what_meters_covered_is_known_and_the_rest_is_not(
    cpus: int, steps: list[tuple[int, str, float]]
) -> None:
    events, truth = play(None, cpus, [(0, "read", 60.0), *steps])
    truth.pass_until(truth.now + 700.0)
    engine = told(events, truth.now)
    for job in list(truth.runs):
        truth.end(job, "open")
    whole, measured = joules(engine)
    assert measured == pytest.approx({p: truth.measured.get(p, 0.0) for p in PURPOSES}, abs=1e-6)
    if any(isnan(spent_j) for spent_j in truth.joules.values()):
        assert None in whole.values()
    else:
        assert whole == pytest.approx(measured)


def test_a_day_with_a_meter_worked_out_by_hand() -> None:
    """Two CPUs, one at work. By the table 50 W of 75 are the job's: two thirds of the meter's."""
    events = [joined(TABLE, 2), *started(0.0), (600.0, ev.POWER, 0, 120.0)]
    engine = told([*events, (1200.0, ev.COMPLETED, 1, None)], 1200.0)
    whole, measured = joules(engine)
    assert measured["goodput"] == pytest.approx(600 * 80.0)
    assert measured["idle"] == pytest.approx(600 * 40.0)
    assert whole["goodput"] == pytest.approx(600 * 50.0 + 600 * 80.0)
    assert whole["idle"] == pytest.approx(600 * 25.0 + 600 * 40.0)


def test_without_a_table_a_reading_is_split_by_cpus() -> None:
    events = [joined(None, 4), (0.0, ev.POWER, 0, 120.0), *started(0.0)]
    whole, measured = joules(told([*events, (300.0, ev.COMPLETED, 1, None)], 300.0))
    assert whole == measured
    assert (measured["goodput"], measured["idle"]) == (300 * 30.0, 300 * 90.0)


def test_a_reading_lapses_and_the_table_is_asked_again() -> None:
    events = [joined(TABLE, 1), (0.0, ev.POWER, 0, 60.0), *started(0.0)]
    whole, measured = joules(told(events, METER_VALID_S + 100.0))
    assert measured["open"] == 60.0 * METER_VALID_S
    assert whole["open"] == pytest.approx(60.0 * METER_VALID_S + 100.0 * 100.0)


def test_a_suspended_run_is_given_nothing_of_what_is_measured_meanwhile() -> None:
    events: list[Event] = [joined(TABLE, 1), *started(0.0), (100.0, ev.POWER, 0, 70.0)]
    events += [(200.0, ev.SUSPENDED, 1, None), (400.0, ev.RESUMED, 1, None)]
    whole, measured = joules(told([*events, (500.0, ev.COMPLETED, 1, None)], 500.0))
    assert whole["goodput"] == pytest.approx(100 * 100.0 + 100 * 70.0 + 100 * 70.0)
    assert measured == pytest.approx(
        {"goodput": 200 * 70.0, "idle": 200 * 70.0, "badput": 0, "open": 0, "sleep": 0, "owner": 0}
    )


@pytest.mark.parametrize(
    "readings",
    [
        [(0.0, 60.0), (300.0, 80.0), (300.0, 80.0)],
        [(0.0, 60.0), (300.0, 80.0), (200.0, 999.0)],
    ],
    ids=["told twice", "older than the last"],
)
def test_a_reading_that_tells_nothing_new_changes_nothing(
    readings: list[tuple[float, float]],
) -> None:
    events = [(time_s, ev.POWER, 0, watts) for time_s, watts in readings]
    whole, measured = joules(told([joined(TABLE, 1), *events], 600.0))
    assert whole == measured
    assert measured["idle"] == 300 * 60.0 + 300 * 80.0


def test_a_reading_that_comes_late_counts_from_what_is_booked_already() -> None:
    events: list[Event] = [joined(TABLE, 1), *started(500.0), (300.0, ev.POWER, 0, 60.0)]
    _, measured = joules(told(events, 10_000.0))
    assert measured["idle"] == 0.0
    assert measured["open"] == (300.0 + METER_VALID_S - 500.0) * 60.0


def test_a_run_that_ends_late_leaves_no_measured_joule_to_nobody() -> None:
    events: list[Event] = [joined(TABLE, 1), (0.0, ev.POWER, 0, 60.0), *started(0.0)]
    events += [(400.0, ev.POWER, 0, 60.0), (300.0, ev.COMPLETED, 1, None)]
    _, measured = joules(told(events, 600.0))
    assert sum(measured.values()) == 600 * 60.0


def test_a_job_that_runs_twice_on_a_machine_is_given_each_run_once() -> None:
    events: list[Event] = [joined(TABLE, 1), (0.0, ev.POWER, 0, 60.0), *started(0.0)]
    events += [(100.0, ev.EVICTED, 1, "unknown"), (200.0, ev.STARTED, 1, (0, 1))]
    _, measured = joules(told([*events, (300.0, ev.COMPLETED, 1, None)], 300.0))
    parts = (measured["badput"], measured["idle"], measured["goodput"])
    assert parts == (100 * 60.0, 100 * 60.0, 100 * 60.0)


def test_a_machine_that_leaves_takes_its_reading_with_it() -> None:
    events: list[Event] = [joined(TABLE, 1), (0.0, ev.POWER, 0, 60.0), (100.0, ev.LEFT, 0, None)]
    events += [(200.0, *joined(TABLE, 1)[1:])]
    whole, measured = joules(told(events, 300.0))
    assert measured["idle"] == 100 * 60.0
    assert whole["idle"] == 100 * 60.0 + 100 * 50.0


@given(steps=steps, cut=st.integers(0, 25))
@settings(max_examples=examples(100), derandomize=True)
def test_a_restart_between_readings_gives_the_same_state(
    steps: list[tuple[int, str, float]], cut: int
) -> None:
    events, truth = play(TABLE, 3, [(0, "start", 0.0), (60, "read", 70.0), *steps])
    never_stopped, before, after = metered_engine(), metered_engine(), metered_engine()
    before.feed(events[: cut + 3])
    after.restore(msgspec.msgpack.decode(msgspec.msgpack.encode(before.save())))
    for engine in (never_stopped, after):
        engine.feed(events if engine is never_stopped else events[cut + 3 :])
        engine.finish(truth.now + 100.0)
    assert msgspec.msgpack.encode(after.save()) == msgspec.msgpack.encode(never_stopped.save())
    assert joules(after) == joules(never_stopped)


@pytest.mark.parametrize("watts", [nan, inf, -inf, "60", None, True])
def test_a_reading_that_no_meter_can_give_is_malformed(watts: object) -> None:
    assert not is_well_formed((1.0, ev.POWER, "m1", watts))


@pytest.mark.parametrize("watts", [0, 0.0, 63.2])
def test_a_reading_of_watts_is_well_formed(watts: float) -> None:
    assert is_well_formed((1.0, ev.POWER, "m1", watts))
