"""Tests of the events between two looks at a job's ad, by hand-made ads."""

from typing import Any

import pytest

from outrider.api import JobSpec, NamedEvent, Resources, events
from outrider_adapters.htcondor.job_steps import (
    COMPLETED,
    HELD,
    IDLE,
    NEW,
    REMOVED,
    RUNNING,
    STEP_ATTRIBUTES,
    SUSPENDED,
    TRANSFERRING,
    SeenJob,
    dated,
    edited,
    seen,
    steps,
)
from outrider_adapters.readers.htcondor.job_ads import UNKNOWN_HOST
from tests.adapters.htcondor.watched_pool import named

ON_M1 = SeenJob(RUNNING, 1, "m1")


def ad(status: int, entered_s: int, runs: int = 0, **more: Any) -> dict[str, Any]:
    return {"JobStatus": status, "QDate": 10, "EnteredCurrentStatus": entered_s,
            "NumShadowStarts": runs, "RequestCpus": 2, **more}  # fmt: skip


def reported(before: SeenJob | None, now: dict[str, Any]) -> list[tuple[float, str, Any]]:
    """Time, kind, and the machine of a start or the reason of an end."""
    events: list[NamedEvent] = steps("ap#1.0", before, now, JobSpec())
    return [(event[0], named(event)[0], _detail(event[3])) for event in events]


def _detail(extra: Any) -> Any:
    if isinstance(extra, tuple):
        return extra[0]
    return extra if isinstance(extra, str) else None


def test_a_job_that_nothing_befell_has_nothing_to_tell() -> None:
    for before in (NEW, ON_M1, SeenJob(HELD, 1), SeenJob(SUSPENDED, 1, "m1")):
        same = ad(before.status, 50, before.runs, RemoteHost="slot1@m1", JobCurrentStartDate=40)
        assert reported(before, same) == []


def test_a_job_submitted_on_hold() -> None:
    assert reported(None, ad(HELD, 10)) == [(10, "submitted", None), (10, "held", None)]


def test_a_start_has_its_own_time_machine_cpus_and_slot() -> None:
    now = ad(RUNNING, 41, 1, RemoteHost="slot1_2@m3@host", JobCurrentStartDate=40)
    assert steps("ap#1.0", NEW, now, JobSpec())[0][3] == ("m3@host", 2, "slot1_2")
    assert reported(NEW, now) == [(40, "started", "m3@host")]
    assert steps("ap#1.0", NEW, now | {"CpusProvisioned": 4}, JobSpec())[0][3][1] == 4


def test_a_lost_connection_and_the_reconnection() -> None:
    run = {"RemoteHost": "slot1@m1", "JobCurrentStartDate": 40}
    lost = ad(RUNNING, 41, 1, **run, JobDisconnectedDate=60, JobCurrentReconnectAttempt=1)
    away = seen(lost, ON_M1)
    assert away.away
    assert reported(ON_M1, lost) == [(60, "disconnected", None)]
    assert reported(away, lost) == []
    assert reported(NEW, lost) == [(40, "started", "m1"), (60, "disconnected", None)]
    again = ad(RUNNING, 41, 1, **run, JobDisconnectedDate=60, LastJobLeaseRenewal=70)
    assert reported(away, again) == [(70, "reconnected", None)]
    assert reported(seen(again, away), again) == []
    gone = ad(IDLE, 80, 1, JobCurrentStartDate=40, JobCurrentStartExecutingDate=40)
    assert [kind for _, kind, _ in reported(away, gone)] == ["evicted"]


def test_two_runs_since_of_which_one_goes_on() -> None:
    now = ad(RUNNING, 70, 2, RemoteHost="slot1@m2", LastRemoteHost="slot1@m1",
             JobLastStartDate=40, LastVacateTime=60, JobCurrentStartDate=70)  # fmt: skip
    assert reported(NEW, now) == [
        (40, "started", "m1"), (60, "evicted", "unknown"), (70, "started", "m2"),
    ]  # fmt: skip


def test_two_runs_since_that_are_both_over_do_not_tell_where_the_first_was() -> None:
    now = ad(IDLE, 90, 2, LastRemoteHost="slot1@m2", JobLastStartDate=40, LastVacateTime=90,
             JobCurrentStartDate=70)  # fmt: skip
    assert reported(NEW, now) == [
        (40, "started", UNKNOWN_HOST), (70, "evicted", "unknown"),
        (70, "started", "m2"), (90, "evicted", "unknown"),
    ]  # fmt: skip


def test_a_run_that_was_seen_and_another_that_completed() -> None:
    now = ad(COMPLETED, 95, 2, LastRemoteHost="slot1@m2", LastVacateTime=60,
             JobCurrentStartDate=70, CompletionDate=94)  # fmt: skip
    assert reported(ON_M1, now) == [
        (60, "evicted", "unknown"), (70, "started", "m2"), (94, "completed", None),
    ]  # fmt: skip


def test_a_job_that_was_released_ran_twice_and_is_held_again() -> None:
    now = ad(HELD, 95, 2, LastRemoteHost="slot1@m2", JobLastStartDate=40, LastVacateTime=95,
             JobCurrentStartDate=70)  # fmt: skip
    kinds = [(time_s, kind) for time_s, kind, _ in reported(SeenJob(HELD, 0), now)]
    assert kinds == [
        (40, "released"), (40, "started"), (70, "evicted"), (70, "started"), (95, "held"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("before", "now", "kind"),
    [
        (SeenJob(HELD, 0), ad(IDLE, 50), "released"),
        (ON_M1, ad(HELD, 50, 1), "held"),
        (ON_M1, ad(REMOVED, 50, 1), "removed"),
        (SeenJob(HELD, 0), ad(REMOVED, 50), "removed"),
        (ON_M1, ad(SUSPENDED, 50, 1, RemoteHost="slot1@m1"), "suspended"),
        (SeenJob(SUSPENDED, 1, "m1"), ad(RUNNING, 50, 1, RemoteHost="slot1@m1"), "resumed"),
        (ON_M1, ad(IDLE, 50, 1), "evicted"),
    ],
)
def test_one_step_is_one_event_at_the_time_at_which_it_entered_its_status(
    before: SeenJob, now: dict[str, Any], kind: str
) -> None:
    assert [(time_s, name) for time_s, name, _ in reported(before, now)] == [(50, kind)]


def test_a_job_edited_to_look_as_if_it_ran_has_no_run_that_could_end() -> None:
    """A user edits one attribute after the other, and looks fall between."""
    on_hold, seems = SeenJob(HELD, 0), ad(RUNNING, 10)
    assert reported(on_hold, seems) == [(10, "released", None)]
    assert reported(
        seen(seems), ad(RUNNING, 10, 1, RemoteHost="slot1@m1", JobCurrentStartDate=60)
    ) == [(60, "started", "m1")]
    assert reported(seen(seems), ad(IDLE, 70)) == reported(seen(seems), ad(SUSPENDED, 70)) == []
    assert reported(seen(seems), ad(HELD, 70)) == [(70, "held", None)]


def test_a_run_that_no_machine_got_going_failed_to_start() -> None:
    tried = ad(IDLE, 52, 1, LastRemoteHost="slot1@m1", JobCurrentStartDate=50, LastVacateTime=40,
               JobCurrentStartExecutingDate=30)  # fmt: skip
    assert reported(NEW, tried) == [(50, "started", "m1"), (52, "evicted", "failed_start")]
    began = tried | {"JobCurrentStartExecutingDate": 51}
    assert reported(NEW, began)[1] == (52, "evicted", "unknown"), "its shadow gave up later"
    again = tried | {"NumShadowStarts": 7, "JobLastStartDate": 45}
    assert reported(NEW, again) == [
        (45, "started", UNKNOWN_HOST), (50, "evicted", "failed_start"),
        (50, "started", "m1"), (52, "evicted", "failed_start"),
    ]  # fmt: skip


def test_a_run_that_was_seen_may_have_failed_to_start_and_been_tried_again() -> None:
    """The schedd tries a claim twice within 30 ms, so that a look may fall between the two."""
    first = ad(RUNNING, 50, 1, RemoteHost="slot1@m1", JobCurrentStartDate=50, LastVacateTime=40,
               JobCurrentStartExecutingDate=30)  # fmt: skip
    again = first | {"JobStatus": IDLE, "NumShadowStarts": 2, "LastRemoteHost": "slot1@m1",
                     "JobLastStartDate": 50}  # fmt: skip
    assert reported(seen(first), again) == [
        (50, "evicted", "failed_start"), (50, "started", "m1"), (50, "evicted", "failed_start"),
    ]  # fmt: skip


def test_a_run_that_was_seen_and_began_did_not_fail_however_often_it_failed_since() -> None:
    first = ad(RUNNING, 50, 1, RemoteHost="slot1@m1", JobCurrentStartDate=50)
    again = ad(IDLE, 92, 4, LastRemoteHost="slot1@m1", JobLastStartDate=80, LastVacateTime=70,
               JobCurrentStartDate=90, JobCurrentStartExecutingDate=51)  # fmt: skip
    assert reported(seen(first), again) == [
        (70, "evicted", "unknown"), (90, "started", "m1"), (92, "evicted", "failed_start"),
    ]  # fmt: skip


@pytest.mark.parametrize(("code", "reason"), [(6, "failed_start"), (1014, "drained")])
def test_the_code_of_a_lost_run_says_why_where_it_does(code: int, reason: str) -> None:
    lost = ad(IDLE, 60, 1, LastVacateTime=60, JobCurrentStartDate=40, VacateReasonCode=code)
    assert reported(ON_M1, lost) == [(60, "evicted", reason)]


def test_a_job_held_because_it_could_not_start_is_told_by_both() -> None:
    now = ad(HELD, 60, 1, LastVacateTime=60, JobCurrentStartDate=60, VacateReasonCode=6)
    assert reported(ON_M1, now) == [(60, "evicted", "failed_start"), (60, "held", None)]
    assert reported(SeenJob(HELD, 1), now) == [], "told before"


def test_a_user_may_write_anything_into_an_ad_of_his() -> None:
    words: dict[str, Any] = dict.fromkeys(STEP_ATTRIBUTES, "x")
    assert reported(None, words) == [(0, "submitted", None)]
    mad = ad(RUNNING, 50, 1, RemoteHost=7, CpusProvisioned=1e300, JobCurrentStartDate=float("inf"))
    assert steps("ap#1.0", NEW, mad, JobSpec())[0][:4] == (50.0, events.STARTED, "ap#1.0", ("7", 1))
    assert reported(ON_M1, ad(IDLE, 60, 1, VacateReasonCode="x"))[0][2] == "unknown"


def test_what_is_dated_beyond_all_reason_is_told_as_of_now() -> None:
    now_s = 1_800_000_000.0
    times = (0.0, now_s - 86_400.0, 5.0, now_s - 9.0, now_s + 1e9, 1e300)
    found = dated([(time_s, events.HELD, "ap#1.0", None) for time_s in times], now_s)
    assert [event[0] for event in found] == [
        now_s - 86_400.0, now_s - 86_400.0, now_s - 9.0, now_s - 9.0, now_s, now_s,
    ], "in order, still"  # fmt: skip
    two: list[NamedEvent] = [(0.0, events.HELD, "ap#1.0", None), (7e8, events.HELD, "ap#2.0", None)]
    assert [event[0] for event in dated(two, 7e8 + 1)] == [7e8 + 1, 7e8]


def test_taking_up_a_connection_again_and_handing_over_output_are_no_events() -> None:
    now = ad(TRANSFERRING, 80, 2, NumJobReconnects=1, RemoteHost="slot1@m1",
             JobCurrentStartDate=40)  # fmt: skip
    assert reported(ON_M1, now) == []
    assert seen(now) == SeenJob(TRANSFERRING, 1, "m1", 40)


def test_what_has_ended_is_told_once() -> None:
    gone = ad(COMPLETED, 95, 1, CompletionDate=94, JobCurrentStartDate=40)
    assert reported(SeenJob(COMPLETED, 1), gone) == []


def test_what_a_running_job_has_used_is_no_edit_of_its_request() -> None:
    before, after = (JobSpec(resources=Resources(memory_mib=mib)) for mib in (100.0, 200.0))
    assert edited(before, after, is_running=True) == {}
    assert edited(before, after, is_running=False) == {"resources": after.resources}
    assert edited(JobSpec(cpus=1), JobSpec(cpus=2), is_running=True) == {"cpus": 2}


def test_a_reconnected_run_goes_on_though_the_queue_counts_a_start() -> None:
    """HTCondor 23.9 after a restart of the schedd: `NumJobReconnects` comes minutes later."""
    run = {"RemoteHost": "slot1@m1", "JobCurrentStartDate": 40, "JobCurrentStartExecutingDate": 41}
    before = seen(ad(RUNNING, 40, 1, **run))
    uncounted = ad(RUNNING, 40, 2, JobRunCount=2, **run)
    assert reported(before, uncounted) == []
    counted = seen(uncounted | {"NumJobReconnects": 1}, seen(uncounted, before))
    assert counted == before
    lost = uncounted | {"JobStatus": IDLE, "EnteredCurrentStatus": 60, "LastVacateTime": 60}
    assert reported(seen(uncounted, before), lost) == [(60, "evicted", "unknown")]
    idle = seen(lost, before)
    again = lost | {"JobStatus": RUNNING, "NumShadowStarts": 3, "NumJobReconnects": 1,
                    "EnteredCurrentStatus": 70, "JobLastStartDate": 40,
                    "JobCurrentStartDate": 70, "RemoteHost": "slot1@m2"}  # fmt: skip
    assert reported(idle, again) == [(70, "started", "m2")]


@pytest.mark.parametrize(
    ("universe", "counted"),
    [(7, {"JobRunCount": 1}), (12, {"JobRunCount": 1, "NumShadowStarts": 1})],
)
def test_a_job_beside_its_schedd_runs_on_the_access_point(
    universe: int, counted: dict[str, int]
) -> None:
    """DAGMan (7) has no shadow, and neither has a `RemoteHost`."""
    runs = {"JobUniverse": universe, "JobCurrentStartDate": 40}
    now = ad(RUNNING, 40) | runs | counted
    assert reported(NEW, now) == [(40, "started", "access point ap")]
    assert reported(seen(now), now) == []
    again = now | dict.fromkeys(counted, 2) | {
        "EnteredCurrentStatus": 60, "JobCurrentStartDate": 60, "JobLastStartDate": 40
    }  # fmt: skip
    assert reported(seen(now), again) == [
        (60, "evicted", "unknown"), (60, "started", "access point ap"),
    ]  # fmt: skip
    over = again | {"JobStatus": COMPLETED, "CompletionDate": 90}
    assert reported(seen(again), over) == [(90, "completed", None)]


def test_a_job_in_another_batch_system_runs() -> None:
    now = ad(RUNNING, 40) | {"JobUniverse": 9, "JobCurrentStartDate": 40}
    assert reported(NEW, now) == [(40, "started", UNKNOWN_HOST)]
