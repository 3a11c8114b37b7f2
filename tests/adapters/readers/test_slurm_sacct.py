"""Events of the rows of a `sacct -P` dump."""

import datetime as dt
from pathlib import Path
from typing import Any

import pytest

from outrider.api import ConfigurationError, JobSpec, NamedEvent, ReaderOptions, Reading, events
from outrider.replay.log_files import LogFile, ingest
from outrider_adapters.readers.slurm import SacctReader
from outrider_adapters.readers.slurm.record_events import MAX_OPEN, first_host

ROW = {
    "JobID": "7",
    "User": "alice",
    "Account": "physics",
    "Submit": "2026-11-21T03:00:00",
    "Eligible": "2026-11-21T03:00:00",
    "Start": "2026-11-21T03:01:00",
    "End": "2026-11-21T03:11:00",
    "AllocCPUS": "8",
    "ReqCPUS": "4",
    "State": "COMPLETED",
    "Timelimit": "1-06:00:00",
    "NodeList": "node[03-04,07]",
    "JobName": "train",
}
AT_3 = dt.datetime(2026, 11, 21, 3, tzinfo=dt.UTC).timestamp()
NEVER_RAN = {"Start": "None", "NodeList": "None assigned", "AllocCPUS": "0"}


def dump(*changes: dict[str, str], header: bool = True) -> bytes:
    """Return rows that differ from `ROW`; a new name in a change is a further column."""
    names = list(dict.fromkeys([*ROW, *(name for change in changes for name in change)]))
    lines = ["|".join(names)] if header else []
    lines += ["|".join((ROW | change).get(name, "") for name in names) for change in changes]
    return "".join(f"{line}\n" for line in lines).encode()


def read(data: bytes, **options: Any) -> Reading:
    reading = SacctReader(ReaderOptions(**options)).read(data, final=True)
    assert reading.consumed == len(data)
    return reading


def told(*changes: dict[str, str]) -> list[tuple[float, str, str, Any]]:
    """Return the events of rows, in minutes after three o'clock."""
    reading = read(dump(*changes))
    assert reading.rejected == {}
    return [
        ((time_s - AT_3) / 60, events.KIND_NAMES[kind], job, extra)
        for time_s, kind, job, extra in reading.events
    ]


def spec_of(**change: str) -> JobSpec:
    spec = read(dump(change)).events[0][3]
    assert isinstance(spec, JobSpec)
    return spec


def test_a_row_tells_the_whole_life_of_a_job() -> None:
    spec = JobSpec(user="alice", vo="physics", cpus=4, estimate_s=108_000.0, recalled=True)
    assert told({}) == [
        (0, "submitted", "7", spec),
        (1, "started", "7", ("node03", 8)),
        (11, "completed", "7", None),
    ]


@pytest.mark.parametrize(
    ("state", "ending"),
    [
        ("COMPLETED", (11, "completed", "7", None)),
        ("FAILED", (11, "completed", "7", None)),
        ("CANCELLED", (11, "removed", "7", "removed")),
        ("CANCELLED by 1000", (11, "removed", "7", "removed")),
        ("TIMEOUT", (11, "removed", "7", "killed")),
        ("DEADLINE", (11, "removed", "7", "killed")),
        ("OUT_OF_MEMORY", (11, "removed", "7", "killed")),
        ("REQUEUED", (11, "evicted", "7", "unknown")),
    ],
)
def test_the_state_tells_how_a_run_ended(state: str, ending: tuple[float, str, str, Any]) -> None:
    assert told({"State": state})[2:] == [ending]


LOST = [("PREEMPTED", "preempted"), ("NODE_FAIL", "unknown"), ("BOOT_FAIL", "failed_start")]


@pytest.mark.parametrize(("state", "reason"), LOST)
def test_a_lost_run_is_an_eviction_where_a_later_row_tells_that_the_job_went_on(
    state: str, reason: str
) -> None:
    later = {"Submit": ROW["End"], "Start": "2026-11-21T03:20:00", "End": "2026-11-21T03:30:00"}
    kinds = [event[1:] for event in told({"State": state}, {"JobID": "8"}, later)]
    of_job = [(kind, extra) for kind, job, extra in kinds if job == "7" and kind != "submitted"]
    assert of_job == [
        ("started", ("node03", 8)),
        ("evicted", reason),
        ("started", ("node03", 8)),
        ("completed", None),
    ]


@pytest.mark.parametrize(("state", "reason"), LOST)
def test_a_lost_run_takes_its_job_along_where_no_later_row_tells_of_it(
    state: str, reason: str
) -> None:
    assert told({"State": state})[2:] == [
        (11, "evicted", "7", reason),
        (11, "removed", "7", reason),
    ]


def test_a_job_that_is_queued_again_is_one_job_with_one_wait(tmp_path: Path) -> None:
    path = tmp_path / "dump"
    again = {"Submit": ROW["End"], "Start": "2026-11-21T03:20:00", "End": "2026-11-21T03:30:00"}
    path.write_bytes(dump({"State": "PREEMPTED"}, {"State": "REQUEUED"} | again | {"JobID": "8"},
                          again))  # fmt: skip
    report = ingest([LogFile(path)])
    assert report["format"] == "slurm-sacct"
    assert report["events"] == {"completed": 1, "evicted": 2, "submitted": 2, "started": 3}
    assert report["wait_s"]["all"]["n"] == 2
    assert report["wait_s"]["all"]["max"] == 540
    assert {reason: n for reason, n in report["evictions"].items() if n} == {
        "preempted": 1, "unknown": 1,
    }  # fmt: skip
    assert report["repairs"] == {}


def test_dumps_that_overlap_tell_of_a_job_once(tmp_path: Path) -> None:
    waiting = {"State": "PENDING", "End": "Unknown"} | NEVER_RAN
    running = {"State": "RUNNING", "End": "Unknown"}
    lost = {"JobID": "8", "State": "PREEMPTED"}
    again = waiting | {"JobID": "8", "Submit": ROW["End"]}
    path = tmp_path / "dumps"
    path.write_bytes(dump(waiting) + dump(running) + dump({}, lost, again) + dump({}, lost, again))
    report = ingest([LogFile(path)])
    assert report["events"] == {"completed": 1, "evicted": 1, "submitted": 2, "started": 2}
    assert report["repairs"] == {}
    assert report["jobs"]["unfinished"] == 1


def test_a_row_told_again_says_nothing_new_of_a_lost_run() -> None:
    later = {"Submit": ROW["End"], "Start": "2026-11-21T03:20:00", "End": "2026-11-21T03:30:00"}
    lost = {"State": "NODE_FAIL"}
    assert "removed" not in [event[1] for event in told(lost, lost, later)]


def test_a_job_is_gone_with_the_last_of_its_lost_runs() -> None:
    first = {"State": "PREEMPTED"}
    second = {"State": "PREEMPTED", "Start": "2026-11-21T03:20:00", "End": "2026-11-21T03:30:00"}
    endings = [event[:2] for event in told(first, second, first) if event[1] == "removed"]
    assert endings == [(30, "removed")]


def test_more_lost_runs_than_are_remembered_take_the_oldest_job_along() -> None:
    rows = [{"JobID": f"{n}", "State": "NODE_FAIL"} for n in range(MAX_OPEN + 1)]
    reader = SacctReader(ReaderOptions())
    gone = [event[2] for event in reader.read(dump(*rows)).events if event[1] == events.REMOVED]
    assert gone == ["0"]
    assert len(reader.save()["lost_runs"]) == MAX_OPEN


@pytest.mark.parametrize(
    ("change", "kinds"),
    [
        ({"State": "PENDING", "End": "Unknown"} | NEVER_RAN, ["submitted"]),
        ({"State": "RUNNING", "End": "Unknown"}, ["submitted", "started"]),
        ({"State": "SUSPENDED", "End": "Unknown"}, ["submitted", "started"]),
        ({"State": "RESIZING"}, ["submitted", "started"]),
        ({"State": "CANCELLED by 0"} | NEVER_RAN, ["submitted", "removed"]),
        ({"State": "DEADLINE", "NodeList": "None assigned"}, ["submitted", "removed"]),
    ],
)
def test_a_job_that_has_not_ended_or_never_ran_tells_only_what_was(
    change: dict[str, str], kinds: list[str]
) -> None:
    assert [event[1] for event in told(change)] == kinds


def test_a_job_cancelled_in_the_queue_has_no_start_though_its_row_gives_one() -> None:
    cancelled = {"State": "CANCELLED", "Start": ROW["End"], "NodeList": "None assigned"}
    assert [event[1] for event in told(cancelled)] == ["submitted", "removed"]


def test_a_job_that_failed_before_it_had_a_node_failed_to_start() -> None:
    assert told({"State": "FAILED"} | NEVER_RAN)[1:] == [(11, "removed", "7", "failed_start")]


def test_a_job_revoked_because_another_cluster_ran_it_is_ignored() -> None:
    assert read(dump({"State": "REVOKED"})).ignored == {"header": 1, "revoked": 1}


@pytest.mark.parametrize("job", ["7", "7_4", "7+0", "7_4+1"])
def test_jobs_tasks_and_components_go_by_sacct_s_spelling(job: str) -> None:
    assert {event[2] for event in told({"JobID": job})} == {job}


@pytest.mark.parametrize(
    ("job", "kind"),
    [
        ("7.batch", "step"),
        ("7.0", "step"),
        ("7_4.extern", "step"),
        ("7+1.interactive", "step"),
        ("7_[5-10%2]", "array_not_yet_split"),
        ("7_[1,3,5]", "array_not_yet_split"),
    ],
)
def test_what_is_no_job_of_its_own_is_ignored_by_kind(job: str, kind: str) -> None:
    assert read(dump({"JobID": job})).ignored == {"header": 1, kind: 1}


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"JobID": "seven"}, "garbage"),
        ({"State": "EXPLODED"}, "state"),
        ({"Start": "yesterday"}, "date"),
        ({"End": "2026-02-30T00:00:00"}, "date"),
        ({"End": "Unknown"}, "no_end"),
        ({"End": "2026-11-21T02:00:00"}, "ends_before_it_starts"),
        ({"State": "PENDING", "Submit": "", "Start": "", "End": ""}, "no_time"),
    ],
)
def test_a_row_that_makes_no_sense_is_rejected_by_reason(
    change: dict[str, str], reason: str
) -> None:
    reading = read(dump(change, {}))
    assert reading.rejected == {reason: 1}
    assert len(reading.events) == 3


@pytest.mark.parametrize(
    "stamp",
    [
        "2026-11-21T03:00:00",
        "2026-11-21 03:00:00",
        "2026-11-21T04:00:00+0100",
        "2026-11-21T04:00:00+01:00",
        "2026-11-21T03:00:00Z",
        f"{AT_3:.0f}",
    ],
)
def test_every_time_format_is_read(stamp: str) -> None:
    assert told({"Submit": stamp})[0][0] == 0


def test_times_without_a_zone_are_local_where_a_zone_is_given() -> None:
    reading = read(dump({"Submit": "2026-07-01T12:00:00"}), timezone="Europe/Berlin")
    noon = dt.datetime(2026, 7, 1, 10, tzinfo=dt.UTC).timestamp()
    assert reading.events[0][0] == noon


def test_an_unknown_time_zone_is_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="Europe/Nowhere"):
        SacctReader(ReaderOptions(timezone="Europe/Nowhere"))


@pytest.mark.parametrize("unset", ["Unknown", "None", "", "0", "1970-01-01T00:00:00"])
def test_without_a_submission_the_wait_is_unknown_and_the_rest_is_kept(unset: str) -> None:
    first, second, third = told({"Submit": unset})
    assert first[:2] == (1, "submitted")
    assert (first[3].seen_submit, first[3].user, first[3].vo) == (False, "alice", "physics")
    assert (second[1], third[1]) == ("started", "completed")


def test_a_restarted_job_does_not_tell_when_it_was_first_submitted() -> None:
    assert spec_of(Restarts="0").seen_submit
    assert not spec_of(Restarts="2").seen_submit


def test_a_table_without_starts_counts_back_from_the_end() -> None:
    rows = b"JobID|State|End|Elapsed\n7|COMPLETED|2026-11-21T03:11:00|00:10:00\n"
    started = read(rows).events[1]
    assert started[:2] == (AT_3 + 60, events.STARTED)
    assert started[3] == ("unknown", 1)


@pytest.mark.parametrize(
    ("limit", "estimate_s"),
    [
        ("1-06:00:00", 108_000),
        ("01:00:00", 3600),
        ("00:30", 30),
        ("90", 5400),
        ("UNLIMITED", None),
        ("Partition_Limit", None),
        ("4294967295", None),
        ("", None),
    ],
)
def test_the_time_limit_is_the_estimate(limit: str, estimate_s: float | None) -> None:
    assert spec_of(Timelimit=limit).estimate_s == estimate_s


def test_the_vo_is_the_account_else_the_group() -> None:
    assert spec_of(Group="users").vo == "physics"
    assert spec_of(Group="users", Account="").vo == "users"
    assert spec_of(Account="").vo == "all"


def test_a_job_is_eligible_at_once_unless_the_row_says_later() -> None:
    assert spec_of().eligible_s is None
    assert spec_of(Eligible="Unknown").eligible_s is None
    assert spec_of(Eligible="2026-11-21T03:00:30").eligible_s == AT_3 + 30


@pytest.mark.parametrize(
    ("nodes", "machine"),
    [
        ("cpn-f13-03-[01-02],cpn-f13-04-[01-02]", "cpn-f13-03-01"),
        ("node[1-3,7]", "node1"),
        ("node[007,9]", "node007"),
        ("rack[0-1]n[2-3]-ib,login", "rack0n2-ib"),
        ("login,node[1-2]", "login"),
        ("node1", "node1"),
        ("", "unknown"),
    ],
)
def test_the_machine_is_the_first_of_the_node_list(nodes: str, machine: str) -> None:
    assert first_host(nodes) == machine


def test_columns_are_found_by_name_in_any_order_and_case() -> None:
    rows = b"STATE|Extra|End|jobid\nCOMPLETED|x|2026-11-21T03:11:00|7\n"
    assert read(rows).events[-1] == (AT_3 + 660, events.COMPLETED, "7", None)


def test_a_name_with_bars_does_not_shift_the_columns() -> None:
    assert told({"JobName": "a|b||c"}) == told({})
    rows = b"JobID|JobName|State|End|\n7|a|b|COMPLETED|2026-11-21T03:11:00|\n"
    assert read(rows).events[-1][:3] == (AT_3 + 660, events.COMPLETED, "7")


def test_the_fields_name_the_columns_of_a_dump_without_a_header() -> None:
    fields = tuple(name.lower() for name in ROW)
    reading = read(dump({}, header=False), fields=fields)
    assert reading.events == read(dump({})).events
    assert reading.ignored == {}
    assert read(dump({}, header=False), fields=("JobID%20", *fields[1:])).events == reading.events


def test_without_header_and_fields_every_row_is_rejected_and_a_warning_says_why() -> None:
    reading = read(dump({}, {}, header=False))
    assert reading.rejected == {"no_header": 2}
    assert len(reading.warnings) == 1
    assert "--fields" in reading.warnings[0]


def test_fields_without_what_is_needed_are_refused_by_name() -> None:
    with pytest.raises(ConfigurationError, match="no state and no end"):
        SacctReader(ReaderOptions(fields=("JobID", "User")))


def test_a_header_without_what_is_needed_is_told_and_its_rows_are_rejected() -> None:
    reading = read(
        b"JobID|JobName|State|ExitCode\n7|train|COMPLETED|0:0\n7.0|train|COMPLETED|0:0\n"
    )
    assert (reading.rejected, reading.ignored) == ({"no_such_column": 1}, {"header": 1, "step": 1})
    assert "no column end" in reading.warnings[0]


def test_a_header_in_the_middle_begins_another_dump() -> None:
    rows = dump({}) + b"JobID|State|End\n8|COMPLETED|2026-11-21T03:11:00\n" + dump({"JobID": "9"})
    reading = read(rows)
    assert reading.ignored == {"header": 3}
    assert {event[2] for event in reading.events} == {"7", "8", "9"}


def test_jobs_of_the_same_number_on_two_clusters_are_two() -> None:
    rows = [{"JobID": "7", "Cluster": "c1"}, {"JobID": "7", "Cluster": "c2"}]
    reading = read(dump(*rows))
    assert {event[2] for event in reading.events} == {"c1:7", "c2:7"}
    assert not any("cluster" in warning for warning in reading.warnings)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        (ReaderOptions(log_name="sacct.txt"), "sacct.txt:7_2"),
        (ReaderOptions(log_name="sacct.txt", system="c9"), "c9:7_2"),
    ],
)
def test_where_no_column_names_the_cluster_a_person_s_word_or_the_file_s_name_does(
    options: ReaderOptions, name: str
) -> None:
    told = SacctReader(options).read(dump({"JobID": "7_2"}), final=True).events
    assert {event[2] for event in told} == {name}
    column = dump({"JobID": "7_2", "Cluster": "c1"})
    told = SacctReader(options).read(column, final=True).events
    assert {event[2] for event in told} == {"c1:7_2"}


def test_only_what_begins_with_sacct_s_header_is_recognised() -> None:
    assert SacctReader.recognises(dump({}))
    assert SacctReader.recognises(b"JobID|JobName|Partition|Account|AllocCPUS|State|ExitCode\n")
    assert not SacctReader.recognises(dump({}, header=False))
    assert not SacctReader.recognises(b"JobID JobName State\n")
    assert not SacctReader.recognises(b"")


def test_a_dump_in_pieces_gives_what_it_gives_whole() -> None:
    states = ["PREEMPTED", "COMPLETED", "NODE_FAIL", "RUNNING", "TIMEOUT"]
    data = dump(*({"JobID": f"{n % 9}", "State": states[n % 5]} for n in range(40)))
    whole = read(data)
    for size in (1, 50, 333):
        reader = SacctReader(ReaderOptions())
        pieces: list[NamedEvent] = []
        records, rest = 0, b""
        for start in range(0, len(data), size):
            rest += data[start : start + size]
            reading = reader.read(rest)
            pieces += reading.events
            records += reading.records
            rest = rest[reading.consumed :]
            saved = reader.save()
            reader = SacctReader(ReaderOptions())
            reader.restore(saved)
        assert pieces + reader.read(rest, final=True).events == whole.events
        assert records == whole.records


def test_half_a_last_line_waits_and_nothing_is_settled_before_it_is_whole() -> None:
    data = dump({"State": "PREEMPTED"}, {})
    reader = SacctReader(ReaderOptions())
    first = reader.read(data[:-1], final=True)
    assert first.consumed == data[:-1].rindex(b"\n") + 1
    assert events.REMOVED not in [event[1] for event in first.events]


def test_an_endless_line_does_not_wait_for_ever() -> None:
    reading = read(dump({}) + b"x" * (2 << 20))
    assert reading.rejected == {"garbage": 1}
    assert len(reading.events) == 3
