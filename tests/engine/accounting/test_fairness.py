"""Fair shares against equation 4 of Perez et al. and against integrals summed second by second."""

import datetime as dt
import random
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.engine import Engine
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.accounting.fairness import Fairness
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.errors import ConfigurationError
from outrider.model.events import Event
from outrider.model.jobs import JobSpec
from outrider.model.localtime import TraceTime
from outrider.model.machines import MachineSpec
from outrider.model.quantities import degenerate
from outrider.testing.fixtures import KeptDecisions
from tests.fixtures.plays import NoActuator
from tests.suite.examples import examples

VOS = ("bio", "phys", "chem")


class Spell(NamedTuple):
    """A run: a VO's CPUs from a start, for some seconds (None: it still goes)."""

    vo: str
    start: float
    run_s: float | None
    cpus: int


spells = st.lists(
    st.builds(
        Spell,
        st.sampled_from(VOS),
        st.integers(0, 200).map(lambda n: n * 100.0),
        st.none() | st.integers(0, 150).map(lambda n: n * 100.0),
        st.integers(1, 4),
    ),
    min_size=1,
    max_size=8,
)
weights = st.sampled_from([{}, {"bio": 0.7, "phys": 0.2, "chem": 0.1}, {"bio": 0.5, "lone": 0.5}])


def told_fairness(
    runs: list[Spell],
    submit_s: float,
    end_s: float,
    targets: dict[str, float],
    half_life_s: float = 86_400.0,
) -> dict[str, Any]:
    """Return the engine's report of these runs; bio submits one job more at `submit_s`."""
    clock = TraceTime(dt.datetime.fromisoformat("2010-01-04T00:00:00"))
    site, accounting = Site(clock, []), Accounting(clock, targets, half_life_s=half_life_s)
    engine = Engine(site, accounting, [], NoActuator(), KeptDecisions(site))
    events: list[Event] = [(0.0, ev.JOINED, 0, MachineSpec(cpus=100))]
    events += [(0.0, ev.SUBMITTED, 900 + n, JobSpec(vo=vo)) for n, vo in enumerate(VOS)]
    events.append((submit_s, ev.SUBMITTED, 990, JobSpec(vo="bio")))
    told: list[tuple[float, int, Event]] = []
    for n, run in enumerate(runs):
        events.append((0.0, ev.SUBMITTED, n, JobSpec(vo=run.vo)))
        told.append((run.start, 1, (run.start, ev.STARTED, n, (0, run.cpus))))
        if run.run_s is not None and run.start + run.run_s <= end_s:
            stop = run.start + run.run_s
            told.append((stop, 2 if not run.run_s else 0, (stop, ev.COMPLETED, n, None)))
    told += [(event[0], -1, event) for event in events]
    told.sort(key=lambda entry: entry[:2])
    engine.feed(event for _, _, event in told)
    engine.finish(end_s)
    return accounting.fairness.report(end_s)


def delivered(runs: list[Spell], until: float) -> dict[str, float]:
    out = dict.fromkeys(VOS, 0.0)
    for run in runs:
        stop = until if run.run_s is None else min(until, run.start + run.run_s)
        out[run.vo] += run.cpus * max(0.0, stop - run.start)
    return out


def utility(got: dict[str, float], targets: dict[str, float]) -> float | None:
    """F = 1 - max_k (w_k - S_k)+ / max_k w_k."""
    owed = targets or {vo: 1 / len(VOS) for vo in VOS}
    total = sum(got.values())
    if not total:
        return None
    worst = max(max(0.0, owed[vo] - got.get(vo, 0.0) / total) for vo in owed)
    return 1 - worst / max(owed.values())


@settings(max_examples=examples(150), derandomize=True)
@given(runs=spells, submit=st.integers(0, 200), targets=weights)
def test_shares_and_utility_are_those_of_equation_4(
    runs: list[Spell], submit: int, targets: dict[str, float]
) -> None:
    submit_s, end_s = submit * 100.0 + 50.0, 40_000.0
    told = told_fairness(runs, submit_s, end_s, targets)
    got = delivered(runs, end_s)
    total = sum(got.values())
    for vo, service in got.items():
        assert told["share"][vo] == (pytest.approx(service / total) if total else None)
        owed = targets.get(vo, 0.0) if targets else 1 / 3
        assert told["target"][vo] == pytest.approx(owed)
    expected = utility(delivered(runs, submit_s), targets)
    assert told["utility"] == (None if expected is None else pytest.approx(expected))


@settings(max_examples=examples(100), derandomize=True)
@given(runs=spells, targets=weights)
def test_the_time_mean_is_over_every_full_hour_since_the_first_start(
    runs: list[Spell], targets: dict[str, float]
) -> None:
    end_s = 40_000.0
    first = min(run.start for run in runs)
    hours = [h * 3600.0 for h in range(12) if first < h * 3600.0 <= end_s]
    values = [v for h in hours if (v := utility(delivered(runs, h), targets)) is not None]
    told = told_fairness(runs, 50.0, end_s, targets)["time_mean"]
    assert told == (pytest.approx(sum(values) / len(values)) if values else None)


@pytest.mark.parametrize("half_life_s", [600.0, 5000.0, 86_400.0])
def test_windowed_service_is_the_integral_with_a_half_life(half_life_s: float) -> None:
    rng, end_s = random.Random(3), 20_000.0
    runs = [
        Spell(rng.choice(VOS), float(rng.randrange(0, 15_000)), rng.choice([None, 700.0, 4000.0]),
              rng.randrange(1, 4))
        for _ in range(12)
    ]  # fmt: skip
    recent = dict.fromkeys(VOS, 0.0)
    for run in runs:
        stop = end_s if run.run_s is None else min(end_s, run.start + run.run_s)
        for second in range(int(run.start), int(stop)):
            recent[run.vo] += run.cpus * 0.5 ** ((end_s - second - 0.5) / half_life_s)
    told = told_fairness(runs, 50.0, end_s, {}, half_life_s)
    assert told["windowed"] == pytest.approx(utility(recent, {}), rel=1e-6)


def test_shares_that_do_not_sum_to_one_are_refused_with_their_sum() -> None:
    with pytest.raises(ConfigurationError, match=r"bio=0\.7, phys=0\.2 sum to 0\.9"):
        Fairness({"bio": 0.7, "phys": 0.2})


def test_a_vo_without_a_target_is_owed_nothing_and_listed() -> None:
    told = told_fairness([Spell("phys", 0.0, None, 1)], 5.0, 10.0, {"bio": 1.0})
    assert told["target"] == {"bio": 1.0, "phys": 0.0, "chem": 0.0}
    assert told["share"] == {"bio": 0.0, "phys": 1.0, "chem": 0.0}


# -- many equal targets -------------------------------------------------------------------------


def test_of_a_hundred_equal_targets_one_vo_without_service_makes_fairness_0() -> None:
    """Ninety-nine are served exactly alike: the deficit of the last is all that it was owed."""
    fairness = Fairness({})
    for number in range(100):
        fairness.submitted(f"vo{number}", 0.0)
    for number in range(99):
        fairness.change(f"vo{number}", 1, 0.0, 0.0)
    fairness.submitted("vo0", 3600.0)
    told = fairness.report(3600.0)
    assert told["utility"] == pytest.approx(0.0)
    note = degenerate(told["target"])
    assert note is not None
    assert "100 VOs have a target of 1.00% each" in note


@pytest.mark.parametrize(
    ("targets", "says_so"),
    [
        ({f"vo{n}": 1 / 20 for n in range(20)}, True),
        ({f"vo{n}": 1 / 19 for n in range(19)}, False),
        ({"big": 0.5} | {f"vo{n}": 0.5 / 30 for n in range(30)}, False),
        ({f"vo{n}": 1 / 20 for n in range(20)} | {"guests": 0.0, "unknown": None}, True),
        ({}, False),
    ],
)
def test_it_is_said_where_targets_are_many_and_equal(
    targets: dict[str, float | None], says_so: bool
) -> None:
    assert (degenerate(targets) is not None) == says_so


def test_before_anything_is_delivered_every_share_is_nought() -> None:
    clock = TraceTime(dt.datetime.fromisoformat("2010-01-04T00:00:00"))
    site, accounting = Site(clock, []), Accounting(clock, {"bio": 0.7, "lone": 0.3})
    engine = Engine(site, accounting, [], NoActuator(), KeptDecisions(site))
    engine.feed([(10.0, ev.SUBMITTED, 0, JobSpec(vo="bio"))])
    assert accounting.fairness.shares(20.0) == {"bio": (0.0, 0.7), "lone": (0.0, 0.3)}
