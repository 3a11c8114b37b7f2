"""Energy by purpose against an integrator that asks, interval by interval, what a machine did."""

import datetime as dt
import itertools
from math import isnan

import pytest
from hypothesis import given, settings

from outrider.engine.accounting import energy
from outrider.engine.accounting.energy import EnergyStatistics
from outrider.engine.accounting.machine_power import IDLING, OWNED
from outrider.formats.campus.campus import Campus
from outrider.model.jobs import RUNNING, Job, JobSpec
from outrider.model.localtime import TraceTime
from outrider.model.machines import ClusterSpec, MachineSpec
from outrider.testing.hand_campus import HOUR_S, Rules, Session, Work, make_campus
from tests.fixtures.campuses import campuses
from tests.fixtures.plays import MAKERS, Play
from tests.fixtures.truth import Run, Truth, runs_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(60), derandomize=True)


def watt_hours(campus: Campus, runs: list[Run]) -> dict[str, float]:
    """Watt-hours by purpose: what each machine did in the middle of every elementary interval."""
    truth, end_s = Truth(campus), campus.span_s
    out = dict.fromkeys(("goodput", "badput", "open", "idle", "sleep", "owner"), 0.0)
    for m in range(len(campus.machine_names)):
        there = [run for run in runs if run.machine == m]
        idle_from = [0.0, *(o for _, o in truth.stays[m]), *truth.reboots(m)]
        idle_from += [run.end_s for run in there]
        cuts = {0.0, end_s, *idle_from, *(i for i, _ in truth.stays[m])}
        cuts |= {run.start_s for run in there}
        cuts |= {t + sleep_after_s(campus, truth, m, t) for t in idle_from}
        edges = sorted(cut for cut in cuts if 0.0 <= cut <= end_s)
        for left, right in itertools.pairwise(edges):
            middle = (left + right) / 2
            purpose, watts = doing(campus, truth, m, there, idle_from, middle)
            out[purpose] += watts * (right - left) / 3600.0
    return out


def doing(
    campus: Campus, truth: Truth, m: int, there: list[Run], idle_from: list[float], time_s: float
) -> tuple[str, float]:
    """Return the purpose of a machine's energy at a moment, and the watts it draws."""
    for run in there:
        if run.start_s <= time_s < run.end_s:
            purpose = {"completed": "goodput", "open": "open"}.get(run.ending, "badput")
            return purpose, float(campus.active_w[m])
    if truth.owned(m, time_s):
        return "owner", float(campus.active_w[m])
    since = max(t for t in idle_from if t <= time_s)
    if time_s - since >= sleep_after_s(campus, truth, m, since):
        return "sleep", float(campus.sleep_w[m])
    return "idle", float(campus.idle_w[m])


def sleep_after_s(campus: Campus, truth: Truth, m: int, since: float) -> float:
    """Idle seconds until sleep, by whether the cluster was open when idleness began."""
    cluster: ClusterSpec = campus.clusters[int(campus.machine_cluster[m])]
    is_open = truth.is_open(m, since)
    return cluster.sleep_after_open_s if is_open else cluster.sleep_after_closed_s


@pytest.mark.parametrize("policy", MAKERS)
@thorough
@given(campus=campuses())
def test_every_purpose_is_the_integral_of_power_over_what_happened(
    policy: str, campus: Campus
) -> None:
    play = Play(campus, [MAKERS[policy]()])
    expected = watt_hours(campus, runs_of(play.told, campus.span_s))
    assert play.report["energy_wh"] == pytest.approx(expected, rel=1e-9, abs=1e-9)


def test_a_day_worked_out_by_hand() -> None:
    """A day at 100 W busy, 50 W idle, 5 W asleep. One hour each of a job, idleness and an owner."""
    campus = make_campus(
        [0], [Work(0.0, HOUR_S)], [Session(0, 4 * HOUR_S, 5 * HOUR_S)], Rules(sleep_open_s=HOUR_S)
    )
    energy = Play(campus, [MAKERS["fifo"]()]).report["energy_wh"]
    assert energy == pytest.approx(
        {"goodput": 100, "badput": 0, "open": 0, "idle": 50, "sleep": 10, "owner": 100}
    )


def book(cpus: int, habits: ClusterSpec) -> EnergyStatistics:
    """One idle machine of 100, 50 and 5 W."""
    made = EnergyStatistics(TraceTime(dt.datetime.fromisoformat("2010-01-04T00:00:00")))
    spec = MachineSpec(cluster="c", cpus=cpus, active_w=100.0, idle_w=50.0, sleep_w=5.0)
    made.join(0, spec, 0, habits)
    made.enter(0, IDLING, 0.0)
    return made


def test_a_machine_with_a_job_on_one_of_its_cpus_is_not_asleep_on_the_other() -> None:
    made = book(2, ClusterSpec("c", sleep_after_open_s=900.0, sleep_after_closed_s=900.0))
    made.work(0, 7, 1, 0.0)
    made.settle(0, 3600.0)
    assert made.joules["sleep"] == [0.0]
    assert made.joules["idle"] == [50.0 * 3600.0 / 2]


def test_a_machine_whose_cpus_all_came_back_sleeps_again() -> None:
    made = book(3, ClusterSpec("c", sleep_after_open_s=900.0, sleep_after_closed_s=900.0))
    for job in range(3):
        made.work(0, job, 1, 0.0)
    for _ in range(3):
        made.rest(0, 1, 100.0)
    assert not made.is_asleep(0, 999.0)
    assert made.is_asleep(0, 1000.0)


@pytest.mark.parametrize(("worked", "works"), [(2, 0), (2, 1), (0, 1), (1, 1)])
def test_after_a_fault_the_cpus_at_work_are_those_of_the_jobs_that_are_known(
    worked: int, works: int
) -> None:
    habits = ClusterSpec("c", sleep_after_open_s=900.0, sleep_after_closed_s=900.0)
    made = book(2, habits)
    if worked:
        made.work(0, 7, worked, 0.0)
    spec = MachineSpec(cluster="c", cpus=2, active_w=100.0, idle_w=50.0, sleep_w=5.0)
    made.correct(0, spec, 0, habits, works, 3600.0)
    assert made.machine(0).busy == works
    before = {purpose: made.joules[purpose][0] for purpose in ("idle", "sleep")}
    made.settle(0, 7200.0)
    idle_j, sleep_j = (made.joules[purpose][0] - before[purpose] for purpose in ("idle", "sleep"))
    # with no CPU at work it idles for a quarter of an hour, as after the end of a job, and sleeps
    asleep_s = 0.0 if works else 2700.0
    assert idle_j == 50.0 * (3600.0 - asleep_s) * (2 - works) / 2
    assert sleep_j == 5.0 * asleep_s


def test_work_on_some_of_its_cpus_draws_their_share_of_a_machines_watts() -> None:
    made = book(4, ClusterSpec("c"))
    assert made.table_j(0, 3600.0) == 100.0 * 3600.0 / 4
    machine = made.machine(0)
    assert [machine.table_w(cpus, 0.0) for cpus in (0, 1, 4, 9)] == [50.0, 62.5, 100.0, 100.0]
    made.leave(0, 10.0)
    assert made.machine(0).table_w(1, 20.0) == 0.0, "it is gone"


def test_joules_that_somebody_else_knows_of_are_added_to_those_of_their_purpose() -> None:
    made = book(1, ClusterSpec("c"))
    made.add("goodput", 0, 40.0)
    made.add("goodput", 0, 2.0)
    made.settle(0, 2.0)
    assert (made.joules["goodput"], made.joules["idle"]) == ([42.0], [100.0])


def test_when_the_notes_are_worked_out_changes_no_sum(monkeypatch: pytest.MonkeyPatch) -> None:
    def lived(at_once: int) -> dict[str, list[float]]:
        monkeypatch.setattr(energy, "_BATCH", at_once)
        made = book(2, ClusterSpec("c", sleep_after_open_s=900.0, sleep_after_closed_s=900.0))
        job = Job(7, JobSpec(), 0.0)
        for n in range(20):
            begin_s = 5_000.0 * n
            job.machine, job.start_s, job.state = 0, begin_s, RUNNING
            made.work(0, 7, 1, begin_s)
            purpose = "goodput" if n % 3 else "badput"
            made.end_run(purpose, 0, 600.0, job, begin_s + 600.0)
            made.enter(0, OWNED, begin_s + 3_000.0)
            made.enter(0, IDLING, begin_s + 3_100.0)
        made.settle(0, 1e5)
        return made.joules

    often, seldom = lived(3), lived(10**6)
    assert often == seldom
    assert often["goodput"] == [13 * 600.0 * 50.0]
    assert often["owner"] == [20 * 100.0 * 100.0]


def test_a_machine_that_nobody_knew_before_the_fault_joins_with_it() -> None:
    habits = ClusterSpec("c", sleep_after_open_s=900.0, sleep_after_closed_s=900.0)
    made = book(2, habits)
    spec = MachineSpec(cluster="c", cpus=2, active_w=30.0, idle_w=10.0)
    made.correct(1, spec, 0, habits, 1, 3600.0)
    assert (made.machine(1).busy, made.table_j(1, 2.0)) == (1, 30.0)


def test_unknown_watts_stay_unknown_in_every_sum_they_enter() -> None:
    made = book(1, ClusterSpec("c"))
    made.join(1, MachineSpec(cluster="c", active_w=None, idle_w=None), 0, ClusterSpec("c"))
    made.enter(1, IDLING, 0.0)
    made.settle(1, 10.0)
    assert isnan(made.joules["idle"][0])
    assert isnan(made.machine(1).table_j(10.0))
