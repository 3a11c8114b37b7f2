"""Events of the records of Slurm's job completion log: one job per line, in pairs."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from outrider.api import JobSpec, ReaderOptions, Reading, events
from outrider.replay.log_files import LogFile, ingest
from outrider_adapters.readers.slurm import JobcompReader

AT_17 = dt.datetime(2026, 11, 21, 17, tzinfo=dt.UTC).timestamp()
NEVER_RAN = {"NodeList": "(null)", "NodeCnt": "0", "ProcCnt": "0"}
PAIRS = {
    "JobId": "1003",
    "UserId": "alice(1001)",
    "GroupId": "users(100)",
    "Name": "wide",
    "JobState": "COMPLETED",
    "Partition": "batch",
    "TimeLimit": "1440",
    "StartTime": "2026-11-21T17:00:40",
    "EndTime": "2026-11-21T17:01:00",
    "NodeList": "node[01-02]",
    "NodeCnt": "2",
    "ProcCnt": "16",
    "WorkDir": "/home/alice",
    "ReservationName": "",
    "Tres": "cpu=2,mem=200M,node=2,billing=2",
    "Account": "physics",
    "QOS": "normal",
    "WcKey": "",
    "Cluster": "unknown",
    "SubmitTime": "2026-11-21T17:00:00",
    "EligibleTime": "2026-11-21T17:00:30",
    "ArrayJobId": "",
    "ArrayTaskId": "",
    "HetJobId": "",
    "HetJobOffset": "",
    "DerivedExitCode": "0:0",
    "ExitCode": "0:0",
}
OPTIONAL = ("ArrayJobId", "ArrayTaskId", "HetJobId", "HetJobOffset")


def line(change: dict[str, str] | None = None, without: tuple[str, ...] = ()) -> bytes:
    """Return a record with pairs in the order of the controller."""
    pairs = PAIRS | (change or {})
    kept = [
        f"{name}={value}"
        for name, value in pairs.items()
        if name not in without and (value or name not in OPTIONAL)
    ]
    return " ".join([*kept, "\n"]).encode()


def read(data: bytes, **options: Any) -> Reading:
    reading = JobcompReader(ReaderOptions(**options)).read(data, final=True)
    assert reading.consumed == len(data)
    return reading


def reported(data: bytes) -> list[tuple[float, str, str, Any]]:
    reading = read(data)
    assert reading.rejected == {}
    return [
        (time_s - AT_17, events.KIND_NAMES[kind], job, extra)
        for time_s, kind, job, extra in reading.events
    ]


LIFE = [
    (
        0,
        "submitted",
        "1003",
        JobSpec(
            user="alice", vo="physics", cpus=2, estimate_s=86_400.0, eligible_s=AT_17 + 30,
            recalled=True,
        ),
    ),
    (40, "started", "1003", ("node01", 16)),
    (60, "completed", "1003", None),
]  # fmt: skip


def test_a_record_tells_the_whole_life_of_a_job() -> None:
    assert JobcompReader.recognises(line())
    assert reported(line()) == LIFE


@pytest.mark.parametrize(
    "change",
    [
        {"Name": "hello world"},
        {"Name": ""},
        {"Name": "odd JobState=FAILED name"},
        {"Name": "JobState=FAILED Partition=x TimeLimit=1 StartTime=Unknown"},
        {"Name": "a=b UserId=root(0) GroupId=root(0)"},
        {"WorkDir": "/tmp/w d"},
        {"GroupId": "domain users (EU)(513)"},
        {"GroupId": "(null)(0)"},
    ],
)
def test_no_name_or_folder_can_be_mistaken_for_what_the_controller_says(
    change: dict[str, str],
) -> None:
    assert reported(line(change)) == LIFE


@pytest.mark.parametrize(
    ("state", "endings"),
    [
        ("COMPLETED", [("completed", None)]),
        ("FAILED", [("completed", None)]),
        ("CANCELLED", [("removed", "removed")]),
        ("TIMEOUT", [("removed", "killed")]),
        ("PENDING", [("evicted", "unknown")]),
        ("NODE_FAIL", [("evicted", "unknown"), ("removed", "unknown")]),
        ("PREEMPTED", [("evicted", "preempted"), ("removed", "preempted")]),
    ],
)
def test_the_state_tells_how_a_run_ended(state: str, endings: list[tuple[str, str | None]]) -> None:
    ends = reported(line({"JobState": state}))[2:]
    assert [event[1::2] for event in ends] == endings
    assert {event[0] for event in ends} == {60}


def test_a_job_cancelled_in_the_queue_never_ran() -> None:
    cancelled = line({"JobState": "CANCELLED", "StartTime": PAIRS["EndTime"]} | NEVER_RAN)
    assert [event[1] for event in reported(cancelled)] == ["submitted", "removed"]


def test_a_preempted_job_that_is_queued_again_stays_one_job(tmp_path: Path) -> None:
    path = tmp_path / "jobcomp.log"
    path.write_bytes(
        line({"JobState": "PREEMPTED"})
        + line({"JobId": "1004"})
        + line(
            {
                "SubmitTime": PAIRS["EndTime"],
                "StartTime": "2026-11-21T17:05:00",
                "EndTime": "2026-11-21T17:09:00",
            }
        )
    )
    report = ingest([LogFile(path)])
    assert report["format"] == "slurm-jobcomp"
    assert report["events"] == {"completed": 2, "evicted": 1, "submitted": 2, "started": 3}
    assert report["wait_s"]["all"]["max"] == 10
    assert report["repairs"] == {}


def test_a_growing_log_leaves_a_job_that_lost_its_run_in_the_queue() -> None:
    reader = JobcompReader(ReaderOptions())
    kinds = [event[1] for event in reader.read(line({"JobState": "NODE_FAIL"})).events]
    assert kinds == [events.SUBMITTED, events.STARTED, events.EVICTED]
    again = JobcompReader(ReaderOptions())
    again.restore(reader.save())
    assert again.read(b"", final=True).events == [(AT_17 + 60, events.REMOVED, "1003", "unknown")]


def test_tasks_and_components_go_by_sacct_s_spelling() -> None:
    task = line({"JobId": "1016", "ArrayJobId": "1002", "ArrayTaskId": "1"})
    component = line({"JobId": "1013", "HetJobId": "1012", "HetJobOffset": "1"})
    assert {event[2] for event in reported(task)} == {"1002_1"}
    assert {event[2] for event in reported(component)} == {"1012+1"}


def test_a_record_of_an_old_slurm_has_an_unseen_submission() -> None:
    later = list(PAIRS)[list(PAIRS).index("ReservationName") :]
    first, started, ended = reported(line(without=tuple(later)))
    assert first[:2] == (40, "submitted")
    assert (first[3].seen_submit, first[3].vo, first[3].cpus) == (False, "users", 16)
    assert [started, ended] == LIFE[1:]
    oldest = line(without=(*later, "GroupId", "ProcCnt", "WorkDir"))
    assert reported(oldest)[1] == (40, "started", "1003", ("node01", 1))


def test_a_time_limit_is_in_minutes_or_unlimited() -> None:
    assert reported(line({"TimeLimit": "1"}))[0][3].estimate_s == 60
    assert reported(line({"TimeLimit": "UNLIMITED"}))[0][3].estimate_s is None


def test_times_are_local_where_a_zone_is_given() -> None:
    (submitted, *_) = read(line(), timezone="Europe/Berlin").events
    assert submitted[0] == AT_17 - 3600


@pytest.mark.parametrize(
    ("record", "reason"),
    [
        (b"JobId=7 UserId=root(0) cut short\n", "garbage"),
        (b"\x00\xff\xfe\n", "garbage"),
        (line({"JobState": "EXPLODED"}), "state"),
        (line({"EndTime": "soon"}), "date"),
        (line({"EndTime": "Unknown"}), "no_end"),
        (line({"EndTime": "2026-11-21T16:00:00"}), "ends_before_it_starts"),
    ],
)
def test_a_line_that_cannot_be_read_is_rejected_and_the_next_is_read(
    record: bytes, reason: str
) -> None:
    reading = read(record + line())
    assert reading.rejected == {reason: 1}
    assert [event[1] for event in reading.events] == [
        events.SUBMITTED, events.STARTED, events.COMPLETED,
    ]  # fmt: skip


def test_bytes_that_are_no_text_do_not_cost_the_record() -> None:
    assert len(read(line().replace(b"wide", b"gel\xf6scht")).events) == 3


def test_other_files_are_not_recognised() -> None:
    for head in (b"", b"JobId=7 is what I looked for\n", b"JobID|State|End\n", line()[30:]):
        assert not JobcompReader.recognises(head)
