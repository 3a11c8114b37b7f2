"""Slots run one job at a time, and the inferred size of a machine can shrink again."""

import pytest

from outrider.engine.ingest.machine_registry import INFERRED_FOR_S
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.engine.ingest.streams import Live

DAY_S = 86_400.0


def start(job: str, at_s: float, slot: str = "slot1", machine: str = "a1") -> list[NamedEvent]:
    """A job submitted and started."""
    return [
        (at_s, ev.SUBMITTED, job, JobSpec()),
        (at_s, ev.STARTED, job, (machine, 1, slot) if slot else (machine, 1)),
    ]


def end(job: str, at_s: float) -> NamedEvent:
    return at_s, ev.COMPLETED, job, None


def width(live: Live) -> int:
    """CPUs of the machine as the engine knows it."""
    return live.site.cpus[0]


def test_new_jobs_on_the_slots_of_jobs_whose_end_nobody_told_end_those() -> None:
    """The startd was restarted with ``condor_restart -fast``."""
    live = Live()
    live.all_at_once("log", [e for n in range(8) for e in start(f"1.{n}", 10.0, f"slot1_{n}")])
    assert width(live) == 8
    live.all_at_once("log", [e for n in range(8) for e in start(f"2.{n}", 500.0, f"slot1_{n}")])
    assert (width(live), live.site.busy[0]) == (8, 8)
    assert dict(live.merger.normaliser.repairs) == {"slot_used_again": 8}
    report = live.told()["report"]
    assert report["evictions"]["unknown"] == 8
    assert report["badput_s"] == 8 * 490.0


@pytest.mark.parametrize("end_first", [True, False])
def test_an_end_and_the_next_start_in_one_second_are_no_lost_run(end_first: bool) -> None:
    """Two users' logs, with whole seconds: their order is not that in which things happened."""
    live = Live()
    live.all_at_once("log", start("1.0", 10.0))
    told = [[end("1.0", 50.0)], start("2.0", 50.0)]
    live.all_at_once("log", [e for part in (told if end_first else told[::-1]) for e in part])
    assert not live.merger.normaliser.repairs
    assert (width(live), live.site.busy[0]) == (1, 1)
    live.all_at_once("log", [end("2.0", 70.0)])
    report = live.told()["report"]
    assert (report["jobs"]["completed"], report["goodput_s"], report["badput_s"]) == (2, 60, 0)


def test_a_held_start_happens_when_its_second_has_passed_though_nothing_else_is_told() -> None:
    live = Live()
    live.tell("log", [*start("1.0", 10.0), *start("2.0", 50.5)])
    live.seen("log", 50.9)
    assert live.merger.note_seen("log", 50.95) is None
    assert [e[1] for e in live.out].count(ev.STARTED) == 1
    assert live.merger.note_seen("log", 51.0) == 51.0
    live.seen("log", 51.0)
    started = [(e[0], e[2]) for e in live.out if e[1] == ev.STARTED]
    assert started == [(10.0, 0), (50.5, 1)]
    assert [e for e in live.out if e[1] == ev.EVICTED] == [(50.5, ev.EVICTED, 0, "unknown")]


def test_a_held_start_survives_a_restart() -> None:
    live, again = Live(), Live()
    live.tell("log", [*start("1.0", 10.0), *start("2.0", 50.5)])
    live.seen("log", 50.9)
    again.merger.normaliser.restore(live.merger.normaliser.save())
    steps = again.merger.normaliser.settle(51.0)
    assert [(e[1], e[2]) for e in steps if e[1] in (ev.EVICTED, ev.STARTED)] == [
        (ev.EVICTED, 0),
        (ev.STARTED, 1),
    ]


def test_what_is_told_of_a_job_whose_start_is_held_lets_it_start_first() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0), *start("2.0", 50.0), end("2.0", 50.5)])
    report = live.told()["report"]
    assert (report["jobs"]["completed"], report["evictions"]["unknown"]) == (1, 1)


def test_a_job_submitted_anew_while_its_start_is_held_leaves_no_cpu_behind() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0), *start("2.0", 50.0), *start("2.0", 52.0)])
    live.all_at_once("log", [end("2.0", 60.0)])
    assert live.site.busy[0] == 0


def test_a_job_that_starts_again_on_its_own_slot_is_the_same_job_s_next_run() -> None:
    live = Live()
    again: NamedEvent = (50.0, ev.STARTED, "1.0", ("a1", 1, "slot1"))
    live.all_at_once("log", [*start("1.0", 10.0), again, end("1.0", 90.0)])
    assert dict(live.merger.normaliser.repairs) == {"end_unseen": 1}
    assert (live.told()["report"]["starts"], width(live)) == (2, 1)


def test_without_slots_nothing_says_that_a_run_is_over() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0, ""), *start("2.0", 50.0, "")])
    assert width(live) == 2
    assert not live.merger.normaliser.repairs


def test_inferred_cpus_that_were_not_in_use_at_once_for_long_are_believed_no_more() -> None:
    live = Live()
    both = [*start("1.0", 0.0, ""), *start("2.0", 0.0, "")]
    live.all_at_once("log", [*both, end("1.0", 60.0), end("2.0", 60.0)])
    assert width(live) == 2
    widths = {}
    for day in range(1, 20):
        at_s = day * DAY_S
        live.all_at_once("log", [*start(f"3.{day}", at_s, ""), end(f"3.{day}", at_s + 60.0)])
        widths[day] = width(live)
    shrunk = min(day for day, cpus in widths.items() if cpus == 1)
    assert INFERRED_FOR_S <= shrunk * DAY_S <= 2 * INFERRED_FOR_S
    assert all(cpus == 1 for day, cpus in widths.items() if day >= shrunk)


def test_what_a_machine_uses_every_week_is_believed_for_ever() -> None:
    live = Live()
    for week in range(10):
        for day in range(7):
            at_s = (7 * week + day) * DAY_S
            jobs = [f"{week}.{day}", f"{week}.{day + 10}"][: 2 if day == 0 else 1]
            live.all_at_once("log", [e for job in jobs for e in start(job, at_s, "")])
            live.all_at_once("log", [end(job, at_s + 60.0) for job in jobs])
            assert width(live) == 2


def away(job: str, at_s: float) -> NamedEvent:
    return at_s, ev.DISCONNECTED, job, None


def test_a_run_that_was_taken_to_be_over_and_completes_has_completed() -> None:
    """Clocks of two access points that differ, or a log that was copied."""
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0), *start("2.0", 50.0)])
    live.all_at_once("log", [end("1.0", 70.0), end("2.0", 90.0)])
    report = live.told()["report"]
    assert (report["jobs"]["completed"], report["goodput_s"], report["badput_s"]) == (2, 60, 40)
    assert dict(live.merger.normaliser.repairs) == {"slot_used_again": 1, "run_went_on": 1}
    assert (width(live), live.site.busy[0]) == (1, 0)


def test_the_end_of_a_run_that_was_taken_to_be_over_is_no_repair() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0), *start("2.0", 50.0)])
    live.all_at_once("log", [(70.0, ev.EVICTED, "1.0", "unknown")])
    assert dict(live.merger.normaliser.repairs) == {"slot_used_again": 1}
    assert live.told()["report"]["evictions"]["unknown"] == 1


def test_a_disconnected_run_counts_as_running_until_more_is_known() -> None:
    live = Live()
    reconnected: NamedEvent = (60.0, ev.RECONNECTED, "1.0", None)
    live.all_at_once("log", [*start("1.0", 10.0), away("1.0", 30.0), reconnected])
    live.all_at_once("log", [end("1.0", 90.0)])
    report = live.told()["report"]
    assert (report["goodput_s"], report["badput_s"]) == (80, 0)
    assert not live.merger.normaliser.repairs


def test_a_disconnected_run_gives_way_to_a_start_that_its_machine_has_no_cpus_for() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0, "slot1_1"), *start("1.1", 10.0, "slot1_2")])
    live.all_at_once("log", [away("1.0", 30.0), *start("2.0", 50.0, "slot1_3")])
    assert (width(live), live.site.busy[0]) == (2, 2)
    assert dict(live.merger.normaliser.repairs) == {"disconnected_run_over": 1}
    failed: NamedEvent = (70.0, ev.EVICTED, "1.0", "unknown")
    live.all_at_once("log", [failed, end("1.1", 80.0), end("2.0", 80.0)])
    report = live.told()["report"]
    assert (report["jobs"]["completed"], report["badput_s"]) == (2, 40)


def test_a_disconnection_that_is_known_later_than_the_start_after_it_ends_the_run() -> None:
    live = Live()
    live.all_at_once("log", [(5.0, ev.JOINED, "a1", MachineSpec(cpus=2))])
    live.all_at_once("log", [*start("1.0", 10.0, "slot1_1"), *start("1.1", 10.0, "slot1_2")])
    live.all_at_once("log", start("2.0", 50.0, "slot1_3"))
    assert (width(live), live.site.busy[0]) == (2, 3)
    live.all_at_once("log", [away("1.0", 60.0)])
    assert (width(live), live.site.busy[0]) == (2, 2)
    assert dict(live.merger.normaliser.repairs) == {"disconnected_run_over": 1}
    live.all_at_once("log", [(70.0, ev.RECONNECTED, "1.0", None), end("1.0", 90.0)])
    assert live.told()["report"]["jobs"]["completed"] == 1


def test_a_run_that_reconnects_after_it_was_given_up_runs_on() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0, "slot1_1"), away("1.0", 30.0)])
    live.all_at_once("log", [*start("2.0", 50.0, "slot1_2")])
    live.all_at_once("log", [(60.0, ev.RECONNECTED, "1.0", None), end("1.0", 90.0)])
    report = live.told()["report"]
    assert (report["jobs"]["completed"], live.site.busy[0]) == (1, 1)
    assert live.merger.normaliser.repairs["run_went_on"] == 1


def test_a_run_that_was_taken_to_be_over_and_reconnects_runs_on() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0), *start("2.0", 50.0)])
    live.all_at_once("log", [(70.0, ev.RECONNECTED, "1.0", None)])
    assert dict(live.merger.normaliser.repairs) == {"slot_used_again": 1, "run_went_on": 1}
    live.all_at_once("log", [end("1.0", 90.0), end("2.0", 90.0)])
    report = live.told()["report"]
    assert (report["jobs"]["completed"], live.site.busy[0]) == (2, 0)


def test_what_cannot_be_of_a_run_that_is_over_is_set_aside_and_its_end_still_counts() -> None:
    live = Live()
    live.all_at_once("log", [*start("1.0", 10.0), *start("2.0", 50.0)])
    live.all_at_once("log", [(60.0, ev.RESUMED, "1.0", None)])
    assert live.merger.set_aside["impossible_state"] == 1
    assert dict(live.merger.normaliser.repairs) == {"slot_used_again": 1}
    live.all_at_once("log", [end("1.0", 70.0), end("2.0", 90.0)])
    assert live.merger.normaliser.repairs["run_went_on"] == 1
    report = live.told()["report"]
    assert (report["jobs"]["completed"], report["goodput_s"]) == (2, 60)
