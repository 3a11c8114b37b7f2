"""State of a site followed in its journal, and the quality of its expected starts."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.outlook import Expected, Outlook
from outrider.formats.workload import Workload
from outrider.journal import Entry, Journal
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.localtime import HOUR_S
from outrider.model.machines import MachineSpec
from tests.forecast.random_sites import CPUS
from tests.forecast.recorded_grid import (
    EPOCH_S,
    busy_weeks,
    journal,
    names,
    started,
    told_by,
)


@pytest.fixture(scope="module", params=[500, pytest.param(900, marks=pytest.mark.long)])
def workload(request: pytest.FixtureRequest) -> Workload:
    """Return some days of batches."""
    return busy_weeks(3, request.param)


@pytest.fixture(scope="module")
def path(workload: Workload, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the journal of the workload."""
    return journal(workload, tmp_path_factory.mktemp("followed") / "journal.sqlite")


def test_what_runs_and_waits_is_what_did(workload: Workload, path: Path) -> None:
    starts_s = started(workload)
    site, looks = FollowedSite(path), 0
    for now_s in site.catch_up():
        looks += 1
        if looks % 10:
            continue
        at_s = now_s - EPOCH_S
        came = workload.submit_s <= at_s
        runs = came & (starts_s <= at_s) & (starts_s + workload.run_s > at_s)
        waits = came & (starts_s > at_s)
        state = site.state()
        assert {site.name(job) for job in site.waiting()} == names(workload, waits)
        assert sorted(state.running.cpus.tolist()) == sorted(workload.cpus[runs].tolist())
        assert state.total_cpus == CPUS
        assert state.free_cpus == CPUS - int(workload.cpus[runs].sum())
    assert looks > 50


def test_a_journal_that_grows_is_followed_from_where_it_was(
    workload: Workload, path: Path, tmp_path: Path
) -> None:
    events = [("grid", event) for event in told_by(workload)]
    growing, half = tmp_path / "journal.sqlite", len(events) // 2
    with Journal(growing) as opened:
        opened.append(Entry(inputs=events[:half]))
    site = FollowedSite(growing)
    first = list(site.catch_up())
    assert list(site.catch_up()) == []
    with Journal(growing) as opened:
        opened.append(Entry(inputs=events[half:]))
    assert first + list(site.catch_up()) == list(FollowedSite(path).catch_up())


def test_what_is_said_comes_true_as_often_as_it_should(tmp_path: Path) -> None:
    workload = busy_weeks(3)  # fewer jobs are over before it has learned from them
    site = FollowedSite(journal(workload, tmp_path / "journal.sqlite"))
    outlook = Outlook(site, "strict", replicates=60)
    seen, hour = set[int](), -1.0
    for now_s in site.catch_up():
        waits = set(site.waiting())
        if waits - seen or now_s // HOUR_S > hour:  # else no question of this look is kept
            outlook.look()
        seen, hour = seen | waits, now_s // HOUR_S
    scores = outlook.scores()
    for kind in ("submission", "hourly"):
        assert scores[kind]["n"] > 100
        assert 0.65 < scores[kind]["coverage_ratio"] < 0.95, scores


class Walked(NamedTuple):
    """Forecasts look by look, without a plan of the batch system and with one; their scores."""

    without: list[tuple[float, dict[str, Expected | None]]]
    beside: list[tuple[float, dict[str, Expected | None]]]
    scores: dict[str, Any]


@pytest.fixture(scope="module")
def walked(workload: Workload, path: Path) -> Walked:
    """Follow the site twice; the plan has every second job, 1,000 s later than its start."""
    starts_s = dict(zip(workload.job_names, started(workload) + EPOCH_S, strict=True))
    late_s = {name: start_s + 1_000.0 for name, start_s in starts_s.items() if hash_of(name) % 2}
    first, second = FollowedSite(path), FollowedSite(path)
    without, beside = Outlook(first, "strict", replicates=20), Outlook(second, "strict", 0, 20)
    looks = Walked([], [], {})
    for n, (now_s, also_s) in enumerate(zip(first.catch_up(), second.catch_up(), strict=True)):
        if n % 3:  # twice an hour is enough
            continue
        looks.without.append((now_s, without.look()))
        looks.beside.append((also_s, beside.look(late_s)))
    return looks._replace(scores=beside.scores())


def test_an_interval_is_in_order_and_no_start_is_expected_in_the_past(walked: Walked) -> None:
    starts: list[Expected] = []
    for now_s, answers in walked.without:
        found = [expected for expected in answers.values() if expected is not None]
        assert all(now_s <= expected.low_s for expected in found)
        starts += found
    assert all(one.low_s <= one.median_s <= one.high_s for one in starts)
    assert len(starts) > 1_000


def test_the_batch_systems_own_plan_is_scored_on_the_same_questions(walked: Walked) -> None:
    scores = walked.scores
    ours, plan = scores["beside_batch_system"], scores["batch_system"]
    asked = scores["submission"]["n"] + scores["hourly"]["n"]
    assert 100 < ours["n"] == plan["n"] < 0.8 * asked, "only of jobs that the plan holds"
    # each start 1,000 s before its plan: (0.9 + 0.5 + 0.1) / 3 of it
    assert plan["pinball_s"] == pytest.approx(500.0)
    assert plan["width_s"] == pytest.approx(0.0, abs=1e-6)
    assert plan["coverage_ratio"] is None
    assert ours["width_s"] > 0.0


def test_a_plan_changes_no_answer(walked: Walked) -> None:
    assert walked.without == walked.beside


def test_nothing_is_said_of_a_job_that_no_machine_can_run(tmp_path: Path) -> None:
    recorded: list[NamedEvent] = [
        (EPOCH_S, ev.JOINED, "m1", MachineSpec("A", cpus=4)),
        (EPOCH_S, ev.USABLE, "m1", None),
        (EPOCH_S, ev.ELIGIBLE, "nowhere", ()),
        (EPOCH_S + 1, ev.SUBMITTED, "no.machine", JobSpec(eligible="nowhere")),
        (EPOCH_S + 1, ev.SUBMITTED, "too.wide", JobSpec(cpus=99)),
        (EPOCH_S + 1, ev.SUBMITTED, "held", JobSpec()),
        (EPOCH_S + 1, ev.HELD, "held", "by its user"),
        (EPOCH_S + 2, ev.SUBMITTED, "fits", JobSpec(cpus=4)),
        (EPOCH_S + 3, ev.TICK, "grid", None),
    ]
    with Journal(tmp_path / "journal.sqlite") as opened:
        opened.append(Entry(inputs=[("grid", event) for event in recorded]))
    site = FollowedSite(tmp_path / "journal.sqlite")
    outlook = Outlook(site, "first_fit", replicates=20)
    [now_s] = site.catch_up()
    now = Expected(now_s, now_s, now_s)
    assert outlook.look() == {"no.machine": None, "too.wide": None, "fits": now}
    assert outlook.unknown == {"no.machine": "no_room", "too.wide": "no_room"}


def test_of_users_without_ended_jobs_nothing_is_known_and_that_is_why(tmp_path: Path) -> None:
    busy = JobSpec(cpus=4, user="new", estimate_s=3600.0)
    recorded: list[NamedEvent] = [
        (EPOCH_S, ev.JOINED, "m1", MachineSpec("A", cpus=4)),
        (EPOCH_S, ev.USABLE, "m1", None),
        *((EPOCH_S + n, ev.SUBMITTED, f"{n}", busy) for n in range(4)),
        (EPOCH_S + 5, ev.STARTED, "0", ("m1", 4)),
        (EPOCH_S + 6, ev.TICK, "grid", None),
    ]
    with Journal(tmp_path / "journal.sqlite") as opened:
        opened.append(Entry(inputs=[("grid", event) for event in recorded]))
    site = FollowedSite(tmp_path / "journal.sqlite")
    outlook = Outlook(site, "first_fit", replicates=20)
    list(site.catch_up())
    assert outlook.look() == {"1": None, "2": None, "3": None}
    assert set(outlook.unknown.values()) == {"no_history"}


def hash_of(name: str) -> int:
    return sum(name.encode())
