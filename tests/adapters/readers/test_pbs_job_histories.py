"""Jobs with several PBS records, in files that begin late, end early and repeat records."""

from pathlib import Path
from typing import Any

import pytest

from outrider.replay.log_files import LogFile, ingest
from tests.adapters.readers.test_pbs_records import PBS_PRO, TORQUE, ended, line, pairs


@pytest.fixture
def reported(tmp_path: Path) -> Any:
    """Return a function from lines of one or two files to the report of ``outrider ingest``."""

    def of_files(*files: list[str]) -> dict[str, Any]:
        logs = []
        for number, lines in enumerate(files):
            path = tmp_path / f"2026112{number}"
            path.write_text("".join(lines))
            logs.append(LogFile(path))
        return ingest(logs)

    return of_files


QUEUED, STARTED = line(0, "Q", "queue=long"), line(10, "S", pairs())


def test_a_job_told_by_all_its_records_is_one_job(reported: Any) -> None:
    report = reported([QUEUED, STARTED, ended(99, 0)])
    assert report["format"] == "pbs"
    assert report["events"] == {"submitted": 1, "started": 1, "completed": 1}
    assert report["duplicates"] == 3
    assert report["repairs"] == {}
    assert report["wait_s"]["all"]["mean"] == 10
    assert (report["goodput_s"], report["badput_s"]) == (2 * 89, 0)


def test_ends_alone_tell_the_same_as_all_records(reported: Any) -> None:
    queued = line(0, "Q", pairs(PBS_PRO, start=None))
    started, end = line(10, "S", pairs(PBS_PRO)), ended(99, 0, PBS_PRO)
    whole, ends = reported([queued, started, end]), reported([end])
    same = ("events", "wait_s", "goodput_s", "badput_s", "jobs", "events_sha256", "repairs")
    assert {name: ends[name] for name in same} == {name: whole[name] for name in same}


def test_a_job_that_ran_over_midnight_is_one_job(reported: Any) -> None:
    report = reported([QUEUED, STARTED], [ended(99, 0)])
    assert report["events"] == {"submitted": 1, "started": 1, "completed": 1}
    assert (report["goodput_s"], report["repairs"]) == (2 * 89, {})


def test_a_deleted_run_counts_until_it_was_dead(reported: Any) -> None:
    report = reported([QUEUED, STARTED, line(90, "D"), ended(99, 271)])
    assert report["events"] == {"submitted": 1, "started": 1, "removed": 1}
    assert report["evictions"]["removed"] == 1
    assert (report["badput_s"], report["repairs"]) == (2 * 89, {})


def test_a_run_that_outlives_its_deletion_by_minutes_is_still_removed_once(reported: Any) -> None:
    report = reported([QUEUED, STARTED, line(20, "D"), ended(200, 271)])
    assert report["events"] == {"submitted": 1, "started": 1, "removed": 1}
    assert (report["badput_s"], report["repairs"]) == (2 * 10, {})


def test_a_job_deleted_while_it_waited_never_started(reported: Any) -> None:
    report = reported([QUEUED, line(5, "D")])
    assert report["events"] == {"submitted": 1, "removed": 1}
    assert report["jobs"]["removed"] == 1
    assert report["starts"] == 0


def test_a_rerun_job_has_two_runs_and_one_life(reported: Any) -> None:
    rerun = line(40, "R", pairs(PBS_PRO, end=1_795_231_060, Exit_status=-3))
    again = line(50, "S", pairs(PBS_PRO, start=50))
    report = reported([
        line(10, "S", pairs(PBS_PRO)), rerun, again, ended(99, 0, PBS_PRO, start=50)
    ])  # fmt: skip
    assert report["events"] == {"submitted": 1, "started": 2, "evicted": 1, "completed": 1}
    assert report["evictions"]["failed_start"] == 1
    assert (report["goodput_s"], report["badput_s"]) == (2 * 49, 2 * 30)
    assert report["repairs"] == {}


def test_a_job_that_starts_again_without_a_word_lost_its_run_in_between(reported: Any) -> None:
    again = line(50, "S", pairs(TORQUE, start=50))
    report = reported([QUEUED, STARTED, again, ended(99, 0, start=50)])
    assert report["repairs"] == {"end_unseen": 1}
    assert report["evictions"]["unknown"] == 1
    assert (report["goodput_s"], report["badput_s"]) == (2 * 49, 2 * 40)


def test_a_job_that_ends_twice_ended_when_it_first_did(reported: Any) -> None:
    report = reported([ended(80, 271), ended(99, 0)])
    assert (report["jobs"]["removed"], report["jobs"]["completed"]) == (1, 0)
    assert (report["badput_s"], report["goodput_s"]) == (2 * 70, 0)
    assert (report["repairs"], report["set_aside"]) == ({}, {"after_end": 1})


def test_the_same_end_twice_is_a_duplicate(reported: Any) -> None:
    report = reported([ended(99, 0), ended(99, 0)])
    assert report["events"] == {"submitted": 1, "started": 1, "completed": 1}
    assert (report["duplicates"], report["repairs"]) == (3, {})


def test_an_abort_after_the_end_changes_nothing_but_is_noticed(reported: Any) -> None:
    report = reported([ended(80, 0), line(99, "A")])
    assert report["jobs"]["completed"] == 1
    assert (report["goodput_s"], report["badput_s"]) == (2 * 70, 0)
    assert (report["repairs"], report["set_aside"]) == ({}, {"after_end": 1})


def test_a_job_routed_from_queue_to_queue_was_submitted_once(reported: Any) -> None:
    routed = [line(0, "Q", "queue=route"), line(30, "Q", "queue=long"), STARTED, ended(99, 0)]
    assert reported(routed)["events"] == {"submitted": 1, "started": 1, "completed": 1}
    message = "user=alice group=g ctime=1795231020 etime=0 queue="
    routed = [line(0, "Q", message + "route"), line(30, "Q", message + "long"), ended(99, 0)]
    assert reported(routed)["events"] == {"submitted": 1, "started": 1, "completed": 1}


def test_time_spent_suspended_is_no_work(reported: Any) -> None:
    paused = [line(20, "z"), line(50, "r")]
    report = reported([QUEUED, STARTED, *paused, ended(99, 0)])
    assert (report["goodput_s"], report["repairs"]) == (2 * (89 - 30), {})


def test_waits_are_right_without_a_zone_where_ends_tell_the_submission(reported: Any) -> None:
    away = [ended(99, 0).replace(" 03:", " 14:")]
    assert reported(away)["wait_s"]["all"]["mean"] == 10
