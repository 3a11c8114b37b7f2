"""Repair and counting of impossible sequences; duplicates change nothing."""

import pytest
from hypothesis import given, settings

from outrider.engine.state.machines import FREE
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from tests.engine.ingest.streams import Live, any_events, run_of
from tests.suite.examples import examples

thorough = settings(max_examples=examples(300), derandomize=True)


@thorough
@given(events=any_events)
def test_no_sequence_of_events_raises_and_no_job_is_lost(events: list[NamedEvent]) -> None:
    live = Live()
    live.tell("log", events)
    live.seen("log", 100.0)
    report = live.told()["report"]
    jobs = report["jobs"]
    assert jobs["submitted"] == jobs["completed"] + jobs["removed"] + jobs["unfinished"]
    running = sum(1 for job in live.site.jobs.values() if job.machine >= 0)
    assert report["starts"] == jobs["completed"] + sum(report["evictions"].values()) + running
    assert sum(live.site.busy) == sum(j.cpus for j in live.site.jobs.values() if j.machine >= 0)
    told = sum(live.merger.counts["log"].values())
    assert told + live.merger.duplicates["log"] == len(events)


@thorough
@given(events=any_events)
def test_machines_are_free_only_while_nobody_keeps_jobs_away(events: list[NamedEvent]) -> None:
    live = Live()
    live.tell("log", events)
    live.seen("log", 100.0)
    site = live.site
    for machine, state in enumerate(site.state):
        allowed = state and site.specs[machine] is not None
        assert not (state and site.owner[machine])
        assert (state == FREE) == bool(allowed and site.busy[machine] < site.cpus[machine])
    assert site.free_total == sum(site.free_n) == sum(state == FREE for state in site.state)


def log() -> list[NamedEvent]:
    """Two jobs; one is evicted and starts again, one is held and released."""
    return [
        *run_of("1.0", "a1", 0.0, 10.0, 100.0),
        (1.0, ev.SUBMITTED, "1.1", JobSpec()),
        (11.0, ev.STARTED, "1.1", ("a2", 1)),
        (20.0, ev.EVICTED, "1.1", "unknown"),
        (21.0, ev.HELD, "1.1", None),
        (30.0, ev.RELEASED, "1.1", None),
        (40.0, ev.STARTED, "1.1", ("a1", 1)),
        (90.0, ev.COMPLETED, "1.1", None),
    ]


def test_a_log_of_jobs_read_twice_counts_once() -> None:
    once, twice = Live(), Live()
    once.all_at_once("log", log())
    twice.all_at_once("log", log())
    twice.all_at_once("log", log())
    assert twice.told() == once.told()
    assert twice.merger.counts == once.merger.counts
    assert twice.merger.duplicates["log"] == len(log())


def test_a_log_of_machines_read_twice_counts_once() -> None:
    machines: list[NamedEvent] = [
        (0.0, ev.JOINED, "a1", MachineSpec(cluster="a", active_w=90.0, idle_w=30.0)),
        (5.0, ev.OWNER_CAME, "a1", None),
        (9.0, ev.OWNER_WENT, "a1", None),
        (12.0, ev.USABLE, "a1", None),
        (15.0, ev.REBOOTED, "a1", None),
        (16.0, ev.USABLE, "a1", None),
    ]
    once, twice = Live(), Live()
    once.all_at_once("log", machines)
    twice.all_at_once("log", machines)
    twice.all_at_once("log", machines)
    assert twice.merger.counts == once.merger.counts
    assert twice.told() == once.told()


def test_a_second_source_with_a_coarser_clock_tells_nothing_new() -> None:
    live = Live(["fine", "coarse"])
    live.tell("fine", run_of("1.0", "a1", 0.25, 10.75, 99.5))
    live.tell("coarse", run_of("1.0", "a1", 0.0, 10.0, 99.0))
    for source in ("fine", "coarse"):
        live.seen(source, 200.0)
    report = live.told()["report"]
    assert (report["starts"], report["jobs"]["completed"]) == (1, 1)
    assert sum(live.merger.duplicates.values()) == 3
    assert not live.merger.normaliser.repairs


@pytest.mark.parametrize(
    ("events", "repairs", "counts"),
    [
        ([(5.0, ev.STARTED, "1.0", ("a1", 1))], {"unseen_submission": 1}, (1, 1, 0, 0)),
        ([(5.0, ev.COMPLETED, "1.0", None)], {"unseen_submission": 1, "run_unseen": 1},
         (1, 0, 0, 1)),
        ([(0.0, ev.SUBMITTED, "1.0", JobSpec()), (5.0, ev.STARTED, "1.0", ("a1", 1)),
          (50.0, ev.STARTED, "1.0", ("a2", 1))], {"end_unseen": 1}, (1, 2, 0, 0)),
        ([(0.0, ev.SUBMITTED, "1.0", JobSpec()), (5.0, ev.HELD, "1.0", None),
          (50.0, ev.STARTED, "1.0", ("a2", 1))], {"release_unseen": 1}, (1, 1, 0, 0)),
    ],
)  # fmt: skip
def test_gaps_are_mended_and_counted(
    events: list[NamedEvent], repairs: dict[str, int], counts: tuple[int, ...]
) -> None:
    live = Live()
    live.all_at_once("log", events)
    report = live.told()["report"]
    jobs = report["jobs"]
    assert dict(live.merger.normaliser.repairs) == repairs
    assert (jobs["submitted"], report["starts"], jobs["completed"], jobs["removed"]) == counts


@pytest.mark.parametrize(
    ("earlier", "told"),
    [
        ([(5.0, ev.HELD, "1.0", "by its user")], JobSpec(user="ann", vo="bio", cpus=4)),
        ([(5.0, ev.STARTED, "1.0", ("a1", 1))], JobSpec(user="ann", vo="bio")),
    ],
)
def test_a_submission_that_is_told_later_says_whose_the_job_is_but_not_how_long_it_waited(
    earlier: list[NamedEvent], told: JobSpec
) -> None:
    live = Live()
    live.tell("log", [*earlier, (6.0, ev.SUBMITTED, "1.0", told)])
    live.seen("log", 10.0)
    (job,) = live.site.jobs.values()
    assert (job.spec.user, job.spec.vo, job.spec.cpus) == (told.user, told.vo, told.cpus)
    assert not job.spec.seen_submit
    assert live.merger.normaliser.repairs == {"unseen_submission": 1, "late_submission": 1}
    assert live.told()["report"]["jobs"]["submitted"] == 1


def test_a_submission_that_is_told_later_takes_nothing_back_that_was_told_of_the_job() -> None:
    live = Live()
    edited = (5.5, ev.CHANGED, "1.0", {"user": "ann", "cpus": 8})
    submitted = (6.0, ev.SUBMITTED, "1.0", JobSpec(user="bob", cpus=2))
    live.tell("log", [(5.0, ev.HELD, "1.0", None), edited, submitted])
    live.seen("log", 10.0)
    (job,) = live.site.jobs.values()
    assert (job.spec.user, job.spec.cpus) == ("ann", 8)
    assert live.merger.normaliser.repairs["late_submission"] == 1


def test_suspended_time_is_neither_goodput_nor_badput_nor_a_share() -> None:
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.SUBMITTED, "1.0", JobSpec(vo="bio")), (0.0, ev.STARTED, "1.0", ("a1", 1)),
        (0.0, ev.SUBMITTED, "1.1", JobSpec(vo="phys")), (0.0, ev.STARTED, "1.1", ("a2", 1)),
        (10.0, ev.SUSPENDED, "1.0", None), (60.0, ev.RESUMED, "1.0", None),
        (100.0, ev.COMPLETED, "1.0", None), (100.0, ev.EVICTED, "1.1", "owner"),
    ]  # fmt: skip
    live.all_at_once("log", told)
    report = live.told()["report"]
    assert report["goodput_s"] == 50.0
    assert report["badput_s"] == 100.0
    assert report["fairness"]["share"] == pytest.approx({"bio": 1 / 3, "phys": 2 / 3})


def test_a_job_suspended_now_gets_no_more_of_its_share() -> None:
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.SUBMITTED, "1.0", JobSpec(vo="bio")), (0.0, ev.STARTED, "1.0", ("a1", 1)),
        (0.0, ev.SUBMITTED, "1.1", JobSpec(vo="phys")), (0.0, ev.STARTED, "1.1", ("a2", 1)),
        (10.0, ev.SUSPENDED, "1.0", None), (90.0, ev.SUBMITTED, "2.0", JobSpec(vo="phys")),
    ]  # fmt: skip
    live.all_at_once("log", told)
    live.engine.finish(90.0)
    share = live.told()["report"]["fairness"]["share"]
    assert share == pytest.approx({"bio": 0.1, "phys": 0.9})


def test_a_job_that_changes_its_vo_while_it_runs_does_not_run_for_ever() -> None:
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.SUBMITTED, "1.0", JobSpec(vo="bio")), (0.0, ev.STARTED, "1.0", ("a1", 1)),
        (50.0, ev.CHANGED, "1.0", {"vo": "phys"}), (100.0, ev.COMPLETED, "1.0", None),
        (10_000.0, ev.SUBMITTED, "2.0", JobSpec(vo="bio")),
    ]  # fmt: skip
    live.all_at_once("log", told)
    share = live.told()["report"]["fairness"]["share"]
    assert sum(share.values()) == pytest.approx(1.0)
    assert all(0.0 <= part <= 1.0 for part in share.values()), share


def test_a_machine_that_tells_anew_what_it_is_stays_closed_while_its_owner_sits_there() -> None:
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.JOINED, "a1", MachineSpec(cluster="a")),
        (5.0, ev.OWNER_CAME, "a1", None),
        (9.0, ev.JOINED, "a1", MachineSpec(cluster="a", active_w=90.0)),
    ]
    live.all_at_once("log", told)
    assert live.site.free_total == 0


def test_a_usable_machine_has_no_owner_whatever_was_left_out() -> None:
    """The log-out before a usable that follows a log-in was never reported."""
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.JOINED, "a1", MachineSpec(cluster="a")),
        (5.0, ev.OWNER_CAME, "a1", None),
        (9.0, ev.USABLE, "a1", None),
    ]
    live.all_at_once("log", told)
    assert not (live.site.state[0] and live.site.owner[0])


def test_a_held_job_is_not_decided_until_it_is_released() -> None:
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.JOINED, "a1", MachineSpec(cluster="a")),
        (5.0, ev.SUBMITTED, "1.0", JobSpec()),
        (5.0, ev.HELD, "1.0", None),
        (50.0, ev.RELEASED, "1.0", None),
    ]
    live.all_at_once("log", told)
    assert [row[0] for row in live.decision_log.rows] == [50.0]


def test_a_machine_that_left_and_runs_a_job_again_has_joined_again() -> None:
    live = Live()
    told: list[NamedEvent] = [
        (0.0, ev.JOINED, "a1", MachineSpec(cluster="a")),
        (5.0, ev.LEFT, "a1", None),
        *run_of("1.0", "a1", 6.0, 7.0, 9.0),
    ]
    live.all_at_once("log", told)
    assert live.site.specs[0] is not None


def test_a_submission_recalled_at_the_end_tells_nothing_new_though_its_time_was_rounded() -> None:
    live = Live(["records"])
    live.tell("records", [*run_of("7", "n1", 0.4, 10.0, 100.0)])
    live.tell("records", [(0.0, ev.SUBMITTED, "8", JobSpec(recalled=True, vo="physics"))])
    live.seen("records", 200.0)
    live.tell("records", [(0.0, ev.SUBMITTED, "7", JobSpec(recalled=True))])
    live.tell("records", [(10.0, ev.STARTED, "8", ("n1", 2)), (90.0, ev.COMPLETED, "8", None)])
    live.seen("records", 300.0)
    report = live.told()["report"]
    assert report["jobs"]["submitted"] == report["jobs"]["completed"] == 2
    assert live.merger.duplicates["records"] == 1
    assert not live.merger.normaliser.repairs
    assert report["work_s"]["by_vo"]["physics"] == {"goodput": 160.0, "badput": 0.0}


def test_what_the_record_of_the_end_says_more_is_told_before_the_jobs_next_event() -> None:
    live = Live(["records"])
    live.tell("records", [(0.0, ev.SUBMITTED, "7", JobSpec()), (9.0, ev.STARTED, "7", ("n", 2))])
    fuller = JobSpec(user="ann", vo="bio", cpus=2, recalled=True)
    live.tell("records", [(0.0, ev.SUBMITTED, "7", fuller), (59.0, ev.COMPLETED, "7", None)])
    live.seen("records", 100.0)
    report = live.told()["report"]
    assert report["work_s"]["by_vo"] == {"bio": {"goodput": 100.0, "badput": 0.0}}
    assert list(report["wait_s"]["by_vo"]) == ["bio"]
    assert dict(live.merger.counts["records"]) == {"submitted": 1, "started": 1, "completed": 1}


def test_a_duplicate_that_comes_late_is_no_late_event() -> None:
    live = Live(["records"])
    live.all_at_once("records", run_of("7", "n1", 0.0, 10.0, 100.0))
    live.all_at_once("records", run_of("7", "n1", 0.0, 10.0, 100.0))
    assert live.merger.late == 0
    assert live.merger.duplicates["records"] == 3


def test_a_recalled_submission_after_the_end_of_a_namesake_is_of_a_new_job() -> None:
    live = Live(["records"])

    def recall(submit_s: float) -> list[NamedEvent]:
        _, *run = run_of("1001", "n1", submit_s, submit_s + 5.0, submit_s + 50.0)
        return [(submit_s, ev.SUBMITTED, "1001", JobSpec(user="ann", recalled=True)), *run]

    for submit_s in (0.0, 0.0, 1000.0, 1000.0):  # each record comes twice
        live.all_at_once("records", recall(submit_s))
    assert live.told()["report"]["jobs"]["completed"] == 2
    assert live.merger.duplicates["records"] == 6
    assert not live.merger.normaliser.repairs


def test_a_meter_makes_no_machine() -> None:
    live = Live()
    live.all_at_once("log", [(1.0, ev.POWER, "fridge", 90.0), *run_of("1", "a1", 2.0, 3.0, 9.0)])
    live.all_at_once("log", [(20.0, ev.LEFT, "a1", None), (21.0, ev.POWER, "a1", 80.0)])
    assert live.merger.normaliser.machine_names == ["a1"]
    assert live.site.free_total == 0
    assert live.merger.set_aside["unknown_machine"] == 2


def test_a_reading_told_again_or_overtaken_by_a_later_one_is_a_duplicate() -> None:
    live = Live()
    live.all_at_once("log", [(0.0, ev.JOINED, "a1", MachineSpec()), (5.0, ev.POWER, "a1", 80.0)])
    live.all_at_once("log", [(5.0, ev.POWER, "a1", 80.0), (9.0, ev.POWER, "a1", 60.0)])
    live.all_at_once("log", [(7.0, ev.POWER, "a1", 70.0)])
    assert live.merger.counts["log"]["power"] == 2
    assert live.merger.duplicates["log"] == 2
