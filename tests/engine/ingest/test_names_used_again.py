"""Names that a batch system gives out again: each belongs to a different job."""

from outrider.engine.ingest.job_registry import ReusedNames
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from tests.engine.ingest.streams import Live, run_of


def names(live: Live) -> list[str]:
    return list(live.merger.normaliser.job_names.values())


def test_a_job_of_a_name_used_again_goes_by_its_submission_too() -> None:
    live = Live()
    live.all_at_once("log", run_of("ap1#1.0", "a1", 100.0, 110.0, 200.0))
    live.all_at_once("log", run_of("ap1#1.0", "a1", 1000.5, 1010.0, 1100.0))
    assert names(live) == ["ap1#1.0", "ap1#1.0#1000"]
    report = live.told()["report"]
    assert (report["jobs"]["submitted"], report["jobs"]["completed"]) == (2, 2)
    assert not live.merger.normaliser.repairs


def test_a_schedd_that_lost_its_queue_counts_its_lost_job_as_removed_and_the_new_as_new() -> None:
    live = Live()
    live.all_at_once("log", run_of("ap1#1.0", "a1", 100.0, 110.0, 200.0)[:2])
    live.all_at_once("log", run_of("ap1#1.0", "a2", 1000.0, 1010.0, 1100.0))
    assert names(live) == ["ap1#1.0", "ap1#1.0#1000"]
    jobs = live.told()["report"]["jobs"]
    assert (jobs["submitted"], jobs["completed"], jobs["removed"]) == (2, 1, 1)
    assert dict(live.merger.normaliser.repairs) == {"submitted_twice": 1}


def test_what_is_told_again_of_either_job_of_a_name_changes_nothing() -> None:
    first = run_of("ap1#1.0", "a1", 100.0, 110.0, 200.0)
    second = run_of("ap1#1.0", "a1", 1000.0, 1010.0, 1100.0)
    live = Live()
    for _ in range(2):
        live.all_at_once("log", [*first, *second])
    live.all_at_once("log", second[:2])
    live.all_at_once("log", first)
    assert live.merger.duplicates["log"] == 11
    assert live.told()["report"]["jobs"]["submitted"] == 2
    assert not live.merger.normaliser.repairs


def test_a_record_of_the_earlier_job_is_not_taken_for_one_of_the_job_that_is_here() -> None:
    live = Live()
    live.all_at_once("log", run_of("ap1#1.0", "a1", 100.0, 110.0, 200.0))
    live.all_at_once("log", run_of("ap1#1.0", "a1", 1000.0, 1010.0, 1100.0)[:2])
    late: list[NamedEvent] = [(150.0, ev.EVICTED, "ap1#1.0", "unknown")]
    live.all_at_once("log", late)
    history = live.merger.normaliser.known_by("ap1#1.0#1000")
    assert history is not None
    assert live.site.jobs[history.number].machine >= 0, "it still runs"
    set_aside = {reason: n for reason, n in live.merger.set_aside.items() if n}
    assert set_aside == {"after_end": 1}


def test_both_names_are_known_after_a_restart() -> None:
    live = Live()
    live.all_at_once("log", run_of("ap1#1.0", "a1", 100.0, 110.0, 200.0))
    live.all_at_once("log", run_of("ap1#1.0", "a1", 1000.0, 1010.0, 1100.0)[:2])
    again = Live()
    again.merger.normaliser.restore(live.merger.normaliser.save())
    assert again.merger.normaliser.job_names == live.merger.normaliser.job_names
    assert again.merger.normaliser.known_by("ap1#1.0#1000") is not None
    assert again.merger.normaliser.known_by("ap1#1.0") is None, "that one has ended"


def test_of_three_jobs_of_a_name_the_forgotten_one_alone_is_told_no_more() -> None:
    """A record belongs to the job that was the last to be submitted before it."""
    reused = ReusedNames()
    assert reused.use_again("ap1#1.0", "ap1#1.0", 1000.0) == "ap1#1.0#1000"
    assert reused.use_again("ap1#1.0", "ap1#1.0#1000", 2000.5) == "ap1#1.0#2000"
    moments_ms = (500_000, 998_999, 999_000, 1_500_000, 1_999_499, 1_999_500, 3_000_000)
    first, second, third = "ap1#1.0", "ap1#1.0#1000", "ap1#1.0#2000"
    assert [reused.at("ap1#1.0", ms) for ms in moments_ms] == [
        first, first, second, second, second, third, third,
    ]  # fmt: skip
    reused.forget(second)
    assert [reused.at("ap1#1.0", ms) for ms in moments_ms] == [
        first, first, first, first, first, third, third,
    ]  # fmt: skip
    reused.forget(first)
    assert {reused.at("ap1#1.0", ms) for ms in moments_ms} == {third}
    reused.forget(third)
    assert reused.save() == {}


def test_two_jobs_of_a_name_in_one_second_get_seconds_of_their_own() -> None:
    reused = ReusedNames()
    given = [reused.use_again("7", "7", moment_s) for moment_s in (1000.1, 1000.7, 1000.9)]
    assert given == ["7#1000", "7#1001", "7#1002"]


def test_a_requeued_job_of_slurm_is_the_same_job() -> None:
    live = Live(["records"])
    spec = JobSpec(user="ann", recalled=True)
    rows: list[NamedEvent] = [
        (100.0, ev.SUBMITTED, "c1:7", spec),
        (110.0, ev.STARTED, "c1:7", ("n1", 1)),
        (200.0, ev.EVICTED, "c1:7", "preempted"),
        (200.0, ev.SUBMITTED, "c1:7", spec),
        (300.0, ev.STARTED, "c1:7", ("n2", 1)),
        (400.0, ev.COMPLETED, "c1:7", None),
    ]
    live.all_at_once("records", rows)
    assert names(live) == ["c1:7"]
    report = live.told()["report"]
    assert (report["jobs"]["submitted"], report["starts"]) == (1, 2)
