"""Limits of what the normaliser remembers, and what it still knows then."""

from typing import Any

import pytest

from outrider.engine.ingest import job_registry, machine_registry
from outrider.engine.ingest.bounded_names import (
    OTHER,
    SWEEP_EVERY_S,
    BoundedNames,
    NameLimits,
    Names,
)
from outrider.engine.ingest.normaliser import Normaliser
from outrider.model import events as ev
from outrider.model.events import Event, NamedEvent
from outrider.model.jobs import RUNNING, Job, JobSpec
from outrider.model.machines import MachineSpec
from tests.engine.ingest.streams import Live, guessed, run_of

YEAR_S = 365 * 86_400.0


def told(normaliser: Normaliser, *events: NamedEvent) -> list[Event]:
    """Return the steps that these events mean, in order."""
    return [step for event in events for step in normaliser.translate(event) or []]


def test_of_jobs_that_ended_the_oldest_are_forgotten_and_their_records_then_new(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(job_registry, "MAX_ENDED", 2)
    live = Live()
    for n in range(4):
        live.all_at_once("log", run_of(f"{n}.0", "a1", 10.0 * n, 10.0 * n + 1, 10.0 * n + 2))
    assert list(live.merger.normaliser.job_names.values()) == ["2.0", "3.0"]
    for n in (2, 3):
        live.all_at_once("log", run_of(f"{n}.0", "a1", 10.0 * n, 10.0 * n + 1, 10.0 * n + 2))
    assert (live.merger.duplicates["log"], live.accounting.submitted) == (6, 4)
    live.all_at_once("log", [(0.0, ev.SUBMITTED, "0.0", JobSpec())])
    assert live.accounting.submitted == 5, "nobody knows any more that it was told before"


def test_of_events_about_machines_the_oldest_are_not_recognised_any_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(machine_registry, "_MAX_SEEN_EVENTS", 2)
    normaliser = Normaliser(guessed)
    spec = MachineSpec("lab")
    events: list[NamedEvent] = [(float(n), ev.JOINED, f"m{n}", spec) for n in range(3)]
    assert len(told(normaliser, *events)) == 3
    drained: list[NamedEvent] = [(float(n), ev.DRAINED, "m0", None) for n in range(3)]
    assert [step[0] for step in told(normaliser, *drained)] == [0.0, 1.0, 2.0]
    assert told(normaliser, drained[2], drained[1]) == [], "these are the last two"
    assert [step[0] for step in told(normaliser, drained[0])] == [0.0]


def test_who_a_changed_job_belongs_to_is_named_as_far_as_names_are_followed() -> None:
    names = Names(NameLimits(user=1, vo=1))
    normaliser = Normaliser(guessed, names=names)
    told(normaliser, (1.0, ev.SUBMITTED, "1.0", JobSpec(user="ada", vo="bio")))
    [step] = told(normaliser, (2.0, ev.CHANGED, "1.0", {"user": "bob", "vo": "phys", "cpus": 2}))
    assert (step[1], step[3].user, step[3].vo, step[3].cpus) == (ev.CHANGED, OTHER, OTHER, 2)
    [step] = told(normaliser, (3.0, ev.CHANGED, "1.0", {"user": "ada", "vo": "bio"}))
    assert (step[3].user, step[3].vo) == ("ada", "bio")
    [step] = told(normaliser, (4.0, ev.CHANGED, "1.0", {"cpus": 7}))
    assert (step[3].user, step[3].cpus) == ("ada", 7)
    assert names.changes({"cpus": 7}, 5.0) == {"cpus": 7}


def test_a_kind_of_eligibility_beyond_the_bound_means_no_machine() -> None:
    normaliser = Normaliser(guessed, names=Names(NameLimits(eligible=1)))
    told(normaliser, (1.0, ev.JOINED, "a", MachineSpec()))
    steps = told(normaliser, (2.0, ev.ELIGIBLE, "fast", ("a",)), (3.0, ev.ELIGIBLE, "slow", ("a",)))
    assert [step[3] for step in steps] == [("fast", (0,), True)]
    assert normaliser.translate((4.0, ev.ELIGIBLE, "slow", ("a",))) == [], "it is told all the same"


def test_a_machine_that_is_forgotten_leaves_before_its_number_is_anothers() -> None:
    names = Names(NameLimits(machine=2), forget_after_s=YEAR_S)
    normaliser = Normaliser(guessed, names=names)
    for n, machine in enumerate(("old", "kept")):
        told(normaliser, *run_of(f"{n}.0", machine, 1.0, 2.0, 3.0))
    told(normaliser, (4.0, ev.ELIGIBLE, "fast", ("old", "kept")))
    told(normaliser, *run_of("2.0", "kept", YEAR_S, YEAR_S + 1, YEAR_S + 2))
    late_s = YEAR_S + 1_000.0
    steps = told(normaliser, *run_of("3.0", "new", late_s, late_s + 1, late_s + 2))
    number = normaliser.machine_names.index("new")
    assert normaliser.machine_names == ["new", "kept"]
    kinds = [(step[1], step[2]) for step in steps]
    assert kinds == [
        (ev.SUBMITTED, 3), (ev.LEFT, number), (ev.ELIGIBLE, 0), (ev.JOINED, number),
        (ev.STARTED, 3), (ev.COMPLETED, 3),
    ]  # fmt: skip
    assert steps[2][3] == ("fast", (1,), True), "the class has lost it"


def test_a_run_beyond_the_bound_ends_no_disconnected_one() -> None:
    """The machine that represents all others has room for every run."""
    normaliser = Normaliser(guessed, names=Names(NameLimits(machine=1)))
    told(normaliser, *run_of("0.0", "known", 1.0, 2.0, 3.0))
    for n in (1, 2):
        told(normaliser, *run_of(f"{n}.0", f"beyond{n}", 10.0, 11.0, 12.0)[:2])
    told(normaliser, (13.0, ev.DISCONNECTED, "1.0", None))
    steps = told(normaliser, *run_of("3.0", "beyond3", 14.0, 15.0, 16.0)[:2])
    assert [step[1] for step in steps] == [ev.SUBMITTED, ev.STARTED]
    assert "disconnected_run_over" not in normaliser.repairs


def test_a_run_that_gets_other_cpus_widens_a_machine_that_is_only_inferred() -> None:
    live = Live()
    live.all_at_once("log", run_of("1.0", "a1", 1.0, 2.0, 9.0)[:2])
    live.all_at_once("log", [(4.0, ev.RESIZED, "1.0", 3)])
    assert (live.site.busy[0], live.site.cpus[0], live.site.jobs[0].cpus) == (3, 3, 3)
    live.all_at_once("log", [(6.0, ev.RESIZED, "1.0", 2)])
    assert (live.site.busy[0], live.site.cpus[0]) == (2, 3), "it has been seen to have three"
    live.all_at_once("log", [(8.0, ev.COMPLETED, "1.0", None)])
    assert live.site.busy[0] == 0
    assert live.accounting.goodput_s == 2.0 + 3 * 2.0 + 2 * 2.0


def test_after_a_fault_a_start_that_waited_for_its_slot_is_forgotten_with_its_job() -> None:
    normaliser = Normaliser(guessed)
    start: Any = ("a1", 1, "slot1")
    told(normaliser, (1.0, ev.SUBMITTED, "1.0", JobSpec()), (2.0, ev.STARTED, "1.0", start))
    told(normaliser, (5.0, ev.SUBMITTED, "2.0", JobSpec()), (5.0, ev.STARTED, "2.0", start))
    assert normaliser.waits_for_slot("2.0")
    first = Job(0, JobSpec(), 1.0)
    first.state, first.machine, first.cpus = RUNNING, 0, 1
    assert normaliser.realign({0: first}, [True], [False]) == {0}
    assert list(normaliser.jobs) == ["1.0"]
    assert told(normaliser, (9.0, ev.COMPLETED, "1.0", None)) == [(9.0, ev.COMPLETED, 0, None)]
    assert normaliser.settle(20.0) == []


def test_after_a_fault_a_machine_that_the_engine_does_not_know_joins_when_it_is_named() -> None:
    normaliser = Normaliser(guessed)
    told(normaliser, (1.0, ev.JOINED, "a", MachineSpec()), (1.0, ev.JOINED, "b", MachineSpec()))
    told(normaliser, (2.0, ev.OWNER_CAME, "b", None))
    assert normaliser.realign({}, [True], [False, False]) == set()
    kinds = [step[1:3] for step in told(normaliser, (3.0, ev.OWNER_CAME, "b", None))]
    assert kinds == [(ev.JOINED, 1), (ev.OWNER_CAME, 1)]
    assert told(normaliser, (3.0, ev.DRAINED, "a", None)) == [(3.0, ev.DRAINED, 0, None)]


def test_names_not_seen_for_long_make_room_but_for_those_in_use() -> None:
    given_up: list[str] = []
    names = BoundedNames(
        3, always=["owed"], forget_after_s=1_000.0, in_use=lambda: ["used"], forget=given_up.extend
    )
    for name, time_s in (("used", 0.0), ("old", 0.0), ("seen", 0.0), ("seen", 900.0)):
        assert names.of(name, time_s) == name
    assert (names.of("new", 900.0), names.folded, given_up) == (OTHER, 1, [])
    assert names.of("owed", 900.0) == "owed", "its place is its own"
    later_s = 900.0 + SWEEP_EVERY_S
    assert names.of("seen", later_s) == "seen"
    assert names.of("new", later_s) == "new"
    assert (given_up, len(names)) == (["old"], 3)
    assert names.of("old", later_s) == OTHER, "it has no place any more"
