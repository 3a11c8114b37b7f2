"""Tests of jobs from the event log, completed by owners and lost records from the queue."""

from pathlib import Path

import pytest

from outrider.api import JobSpec, Resources, events
from outrider_adapters.htcondor import WatchSettings
from outrider_adapters.htcondor.pool_calls import short_id
from outrider_adapters.htcondor.queue import JOB_ATTRIBUTES, was_submitted_on_hold
from tests.adapters.htcondor.watched_pool import (
    BEGIN_S,
    JOB,
    WatchedPool,
    kinds,
    named,
    spec_of,
    without_classes,
)

MEMORY = Resources(memory_mib=128.0)
"""Neutral specification of a job, which contains no information."""


def without_job_ads(log: Path) -> None:
    """Take the 028 records out, as where ``EVENT_LOG_JOB_AD_INFORMATION_ATTRS`` is not set."""
    records = log.read_text().split("...\n")
    log.write_text("".join(f"{one}...\n" for one in records if one and not one.startswith("028")))


def test_a_job_is_told_from_submission_to_its_end(site: WatchedPool) -> None:
    job = site.submit(run_s=25)
    reported = site.reported(after_s=100)
    assert kinds(reported, job) == ["submitted", "started", "completed"]
    assert spec_of(reported, job) == JobSpec(user="alice", vo="physics", cpus=1, resources=MEMORY)
    [place] = [extra for kind, name, extra in reported if (kind, name) == ("started", job)]
    assert place[0] in site.names


def test_the_queue_tells_what_the_log_does_not_say_of_a_job(site: WatchedPool) -> None:
    job = site.submit(run_s=1000, user="bob", request_cpus="2")
    without_job_ads(site.log)
    assert spec_of(site.reported(), job) == JobSpec(
        user="bob", vo="physics", cpus=2, resources=MEMORY
    )


def test_a_job_that_is_over_already_is_looked_up_in_the_history(site: WatchedPool) -> None:
    job = site.submit(run_s=1, user="bob")
    site.pool.advance(BEGIN_S + 60)
    without_job_ads(site.log)
    assert spec_of(site.reported(), job) == JobSpec(
        user="bob", vo="physics", cpus=1, resources=MEMORY
    )


def test_the_estimate_is_read_from_the_attribute_that_the_settings_name(tmp_path: Path) -> None:
    site = WatchedPool(tmp_path, settings=WatchSettings(estimate_attribute="EstimatedRunTime"))
    job = site.submit(run_s=1000, **{"+EstimatedRunTime": "1800"})
    silent = site.submit(run_s=1000)
    reported = site.reported()
    assert spec_of(reported, job).estimate_s == 1800.0
    assert spec_of(reported, silent).estimate_s is None
    site.close()


def test_an_edit_that_no_event_tells_is_found_in_the_queue(site: WatchedPool) -> None:
    job = site.submit(run_s=1000)
    site.reported(10)
    site.pool.schedd("alice").edit([short_id(job)], "RequestCpus", "2")
    assert site.reported(10) == [("changed", job, {"cpus": 2})]
    assert site.reported(10) == []


def test_jobs_older_than_the_log_are_told_from_the_queue(site: WatchedPool) -> None:
    running = site.submit(run_s=5000)
    held = site.submit(run_s=5000, hold="true")
    site.pool.advance(BEGIN_S + 60)
    site.log.write_text("")
    batch = site.look()
    jobs = [event for event in batch.events if event[1] in events.JOB_KINDS]
    reported = [named(event) for event in jobs]
    assert kinds(reported, running) == ["submitted", "started"]
    assert kinds(reported, held) == ["submitted", "held"]
    assert spec_of(reported, running).recalled, (
        "a log that tells of it later must not submit it twice"
    )
    assert [event[0] for event in jobs if event[2] == running] == [BEGIN_S, BEGIN_S + 10]


def test_an_end_that_the_log_has_lost_is_mended_from_the_history(site: WatchedPool) -> None:
    job = site.submit(run_s=20)
    removed = site.submit(run_s=1000)
    site.look(15)
    kept = site.log.read_text()
    site.pool.advance(BEGIN_S + 40)
    site.pool.remove(short_id(removed))
    site.log.write_text(kept)
    reported = [(kind, name) for kind, name, _ in site.reported(30)]
    assert reported == [("completed", job), ("removed", removed)]
    assert site.reported(30) == [], "what was mended once is mended again"


def test_a_whole_run_that_the_log_has_lost_is_mended_from_the_history(site: WatchedPool) -> None:
    job = site.submit(run_s=20)
    site.look()
    kept = site.log.read_text()
    site.pool.advance(BEGIN_S + 40)
    site.log.write_text(kept)
    batch = site.look(30)
    reported = [(event[0], *named(event)[::2]) for event in batch.events if event[2] == job]
    assert [(time_s, kind) for time_s, kind, _ in reported] == [
        (BEGIN_S + 10, "started"), (BEGIN_S + 30, "completed"),
    ]  # fmt: skip
    assert reported[0][2][0] in site.names


def test_a_start_that_the_log_has_lost_is_mended_from_the_queue(site: WatchedPool) -> None:
    job = site.submit(run_s=1000)
    site.look()
    kept = site.log.read_text()
    site.pool.advance(BEGIN_S + 10)
    site.log.write_text(kept)
    reported = site.reported(30)
    assert kinds(reported, job) == ["started"]
    assert reported[0][2][0] in site.names


def test_a_log_that_is_only_a_little_late_is_not_anticipated(site: WatchedPool) -> None:
    job = site.submit(run_s=1000)
    site.look()
    kept = site.log.read_text()
    site.pool.advance(BEGIN_S + 10)
    whole = site.log.read_text()
    site.log.write_text(kept)
    assert site.reported(2) == []
    site.log.write_text(whole)
    assert kinds(site.reported(30), job) == ["started"]


def test_after_a_restart_jobs_that_were_told_are_not_told_again(site: WatchedPool) -> None:
    site.submit(run_s=5000)
    cursor = site.look(30).cursor
    later = site.submit(run_s=5000)
    site.pool.advance(BEGIN_S + 60)
    again = site.new_watch()
    again.start(cursor)
    reported = without_classes(again.look().events)
    assert [name for _, name, _ in reported] == [later, later]
    again.close()


def test_what_is_there_at_the_very_first_look_is_history(site: WatchedPool) -> None:
    site.submit(run_s=5000)
    site.pool.advance(BEGIN_S + 30)
    first = site.new_watch(start_now=True)
    first.start(None)
    old = [first.look(), first.look()]
    assert [batch.history for batch in old] == [True, True]
    assert {event[1] for batch in old for event in batch.events} >= {events.JOINED, events.STARTED}
    site.pool.submit("bob", JOB, 10.0)
    news = first.look()
    assert not news.history
    assert [kind for kind, _, _ in without_classes(news.events)] == ["submitted"]
    first.close()


def test_a_job_that_was_submitted_on_hold_is_held_though_the_log_says_nothing(
    site: WatchedPool,
) -> None:
    job = site.submit(run_s=1000, hold="true")
    records = site.log.read_text().split("...\n")
    site.log.write_text("".join(f"{one}...\n" for one in records if one and one[:3] == "000"))
    reported = site.reported()
    assert kinds(reported, job) == ["submitted", "held"]
    [why] = [extra for kind, name, extra in reported if (kind, name) == ("held", job)]
    assert why == "submitted on hold at user's request (by user alice)"


@pytest.mark.parametrize(
    ("differs", "expected"),
    [({}, True), ({"NumShadowStarts": 1}, False), ({"EnteredCurrentStatus": 101}, False),
     ({"JobStatus": 1}, False)],
)  # fmt: skip
def test_a_job_that_ran_in_the_second_of_its_submission_was_not_submitted_on_hold(
    differs: dict[str, int], expected: bool
) -> None:
    ad = {"JobStatus": 5, "QDate": 100, "EnteredCurrentStatus": 100, "NumShadowStarts": 0}
    assert was_submitted_on_hold(ad | differs) is expected
    assert "NumShadowStarts" in JOB_ATTRIBUTES, "the schedd is asked for it"


def test_a_job_beside_its_schedd_starts_on_no_machine_of_its_host(site: WatchedPool) -> None:
    job = site.submit(run_s=1000)
    site.pool.schedd("alice").edit([short_id(job)], "JobUniverse", "12")
    reported = site.reported(after_s=30)
    [place] = [extra for kind, name, extra in reported if (kind, name) == ("started", job)]
    beside = f"access point {site.point.name}"
    assert place == (beside, 1)
    [joined] = [extra for kind, name, extra in reported if (kind, name) == ("joined", beside)]
    assert (joined.cluster, joined.inferred, joined.usable) == ("access points", True, False)


@pytest.mark.parametrize("cursor", [7, {}, {"log": None, "machines": {"m1": ["A"]}}])
def test_a_cursor_that_is_none_is_refused(site: WatchedPool, cursor: object) -> None:
    with pytest.raises(ValueError, match="no cursor of a watched HTCondor pool"):
        site.new_watch().start(cursor)
