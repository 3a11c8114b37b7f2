"""Standard Workload Format as a log: a line contains a job's whole life."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.api import JobSpec, ReaderOptions, Reading, events
from outrider.formats.swf.reading import read_swf
from outrider.plugins.finding import READERS, find
from outrider_adapters.readers.swf import SwfReader
from tests.cli.running import outrider
from tests.fixtures.workload_files import HEADER, file_of, row

ZERO_S = 1138500000.0


def read(*rows: str, header: str = HEADER) -> Reading:
    text = header + "".join(f"{line}\n" for line in rows)
    return SwfReader(ReaderOptions()).read(text.encode("latin-1"), final=True)


def test_a_line_expands_to_submitted_started_completed() -> None:
    job = row(7, 30, 12.5, 2, wait=2.25, user=3, group=9, partition=1, time_asked=60)
    spec = JobSpec(
        user="3", vo="9", job_class="interactive", cpus=2, estimate_s=60.0, recalled=True
    )
    assert read(job).events == [
        (ZERO_S + 30, events.SUBMITTED, "7", spec),
        (ZERO_S + 32.25, events.STARTED, "7", ("partition-1", 2)),
        (ZERO_S + 44.75, events.COMPLETED, "7", None),
    ]


def test_what_the_log_does_not_say_is_not_made_up() -> None:
    (_, _, _, spec), (_, _, _, place), _ = read(row(1, 0, 1000, wait=0)).events
    assert (spec.user, spec.vo, spec.estimate_s) == ("", "all", None)
    assert (spec.job_class, place) == ("batch", ("unknown", 1))


CLASSES = [
    ("", {"time_asked": 899}, "interactive"),
    ("", {"time_asked": 900}, "batch"),
    ("", {"time_asked": 0}, "batch"),
    ("", {"queue": 1}, "batch"),
    ("; Queue: 1 Interactive (short)\n", {"queue": 1}, "interactive"),
    ("; Queue: 1 interactive\n", {"queue": 2, "time_asked": 60}, "batch"),
    ("; Queue: 1 interactive-night\n", {"queue": 1}, "batch"),
]


@pytest.mark.parametrize("run_s", [5, 5000])
@pytest.mark.parametrize(("named", "said", "job_class"), CLASSES)
def test_the_class_is_what_the_user_said_however_long_it_ran(
    named: str, said: dict[str, int], job_class: str, run_s: int
) -> None:
    job = row(1, 0, run_s, wait=0, **said)
    assert read(job, header=HEADER + named).events[0][3].job_class == job_class


def test_a_replay_gives_the_same_classes_as_a_log(tmp_path: Path) -> None:
    for named in ("", "; Queue: 2 interactive\n"):
        rows = [
            row(n, n, 5 + 400 * (n % 5), wait=0, queue=n % 3, time_asked=300 * (n % 7))
            for n in range(1, 41)
        ]
        reported = [event[3].job_class for event in read(*rows, header=HEADER + named).events
                if event[1] == events.SUBMITTED]  # fmt: skip
        assert reported == read_swf(file_of(tmp_path, *rows, header=HEADER + named)).job_class
        assert set(reported) == {"interactive", "batch"}


def test_a_cursor_of_an_older_release_is_read() -> None:
    reader = SwfReader(ReaderOptions())
    reader.restore({"zero_s": ZERO_S, "warned": False})
    assert reader.read((row(1, 0, 5, wait=0) + "\n").encode()).events[0][0] == ZERO_S


@pytest.mark.parametrize("status", [0, -1])
def test_a_job_that_failed_or_whose_end_is_unknown_completed(status: int) -> None:
    assert [event[1] for event in read(row(1, 0, 5, wait=0, status=status)).events] == [
        events.SUBMITTED, events.STARTED, events.COMPLETED,
    ]  # fmt: skip


def test_a_job_cancelled_while_it_ran_is_removed_at_the_end_of_its_run() -> None:
    reported = read(row(1, 10, 5, wait=1, status=5)).events
    assert [event[:2] for event in reported] == [
        (ZERO_S + 10, events.SUBMITTED), (ZERO_S + 11, events.STARTED),
        (ZERO_S + 16, events.REMOVED),
    ]  # fmt: skip


@pytest.mark.parametrize(("run", "cpus"), [(-1, 1), (0, 0), (-1, 0)])
def test_a_job_cancelled_in_the_queue_is_removed_after_its_wait(run: int, cpus: int) -> None:
    reported = read(row(1, 10, run, cpus, wait=90, status=5)).events
    assert [event[:2] for event in reported] == [
        (ZERO_S + 10, events.SUBMITTED), (ZERO_S + 100, events.REMOVED),
    ]  # fmt: skip


def test_parts_of_a_job_are_ignored_for_another_line_tells_the_whole() -> None:
    reading = read(row(1, 0, 9, wait=0), *(row(1, 0, 3, wait=0, status=s) for s in (2, 3, 4)))
    assert (reading.records, len(reading.events)) == (4, 3)
    assert reading.ignored == {"part of a job": 3}


REJECTED = [
    (row(1, 0, 5), "no wait"),
    (row(1, 0, -1, wait=0), "no run"),
    (row(1, 0, 5, cpus=0, wait=0), "no run"),
    (row(1, -1, 5, wait=0), "no time"),
    (row(1, 2e9, 5, wait=0), "no time"),
    (row(-1, 0, 5, wait=0), "no job number"),
    (row(1.5, 0, 5, wait=0), "no job number"),
    (row("one", 0, 5, wait=0), "not a number"),
    (row(1, "nan", 5, wait=0), "not a number"),
    (row(1, 0, 5, wait=0) + " 1 {7,7} q", "number of columns"),
    ("1 2 3", "number of columns"),
]


@pytest.mark.parametrize(("line", "reason"), REJECTED)
def test_a_line_that_tells_no_life_is_rejected_and_the_rest_is_read(line: str, reason: str) -> None:
    reading = read(line, row(2, 1, 5, wait=0))
    assert reading.rejected == {reason: 1}
    assert (reading.records, len(reading.events)) == (2, 3)


def test_without_a_start_time_it_is_warned_once_that_times_are_the_logs_own() -> None:
    reading = read(row(1, 7, 5, wait=0), row(2, 8, 5, wait=0), header="; MaxProcs: 4\n")
    assert reading.events[0][0] == 7.0
    assert len(reading.warnings) == 1
    assert "no UnixStartTime" in reading.warnings[0]


def test_a_last_line_without_an_end_is_read_only_if_nothing_more_will_come() -> None:
    data = (HEADER + row(1, 0, 5, wait=0)).encode()
    assert SwfReader(ReaderOptions()).read(data).events == []
    whole = SwfReader(ReaderOptions()).read(data, final=True)
    assert (len(whole.events), whole.consumed) == (3, len(data))


def test_reading_goes_on_after_a_pause_with_the_headers_zero() -> None:
    first = SwfReader(ReaderOptions())
    first.read(HEADER.encode())
    second = SwfReader(ReaderOptions())
    first.read(b"; Queue: 3 interactive\n")
    second.restore(json.loads(json.dumps(first.save())))
    (submitted, *_) = second.read((row(1, 0, 5, wait=0, queue=3) + "\n").encode()).events
    assert (submitted[0], submitted[3].job_class) == (ZERO_S, "interactive")


@pytest.mark.parametrize(
    ("head", "is_ours"),
    [
        (HEADER, True),
        ("; a note\n" + row(1, 0, 5) + "\n", True),
        ("  1   0.5  -1 10 " + "-1 " * 14 + "\r\n", True),
        ("; a shell script\necho 1 2 3\n", False),
        ("1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21\n", False),
        ("", False),
    ],
)
def test_its_files_are_recognised(head: str, is_ours: bool) -> None:
    assert SwfReader.recognises(head.encode()) is is_ours


@pytest.mark.skipif(
    "swf" not in find(READERS),
    reason="outrider is not installed here, so its plugins are not found: pip install -e .",
)
def test_ingest_reports_what_a_file_tells(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, row(1, 0, 10, 2, wait=5), row(2, 1, 20, wait=0, partition=2),
        row(3, 2, -1, 0, wait=7, status=5), row(4, 3, 5),
    )  # fmt: skip
    for words in ((), ("--format", "swf")):
        reported = outrider("ingest", path, *words, "--json").json()
        assert (reported["format"], reported["records"], reported["rejected"]) == (
            "swf",
            4,
            {"no wait": 1},
        )
        assert reported["events"] == {"completed": 2, "submitted": 3, "removed": 1, "started": 2}
        assert (reported["wait_s"]["all"]["mean"], reported["goodput_s"]) == (2.5, 40.0)
        assert (reported["repairs"], reported["late"], reported["machines"]) == ({}, 0, 2)


@given(
    data=st.text(alphabet="0123456789.-; \t\nxe", max_size=300),
    cut=st.integers(0, 400),
)
def test_whatever_a_file_holds_reading_it_never_raises(data: str, cut: int) -> None:
    text = (HEADER + row(1, 0, 5, wait=0) + "\n" + data).encode()
    reader = SwfReader(ReaderOptions())
    first = reader.read(text[:cut])
    second = reader.read(text[first.consumed :], final=True)
    for reading in (first, second):
        lost = sum(reading.ignored.values()) + sum(reading.rejected.values())
        submissions = sum(event[1] == events.SUBMITTED for event in reading.events)
        assert reading.records == submissions + lost
        assert all(event[0] >= 0 for event in reading.events)
