"""`outrider ingest`: every record is one thing, several files are one stream."""

import gzip
import hashlib
import os
from pathlib import Path
from typing import Any

import pytest

from outrider.replay import log_files
from tests.cli.running import outrider

FIELDS = {
    "files", "format", "records", "lines", "events", "duplicates", "ignored", "rejected", "jobs",
    "machines", "wait_s", "goodput_s", "badput_s", "evictions", "span_s", "cpu_s", "events_sha256",
}  # fmt: skip
HOST = "<10.0.0.7:9618?addrs=10.0.0.7-9618&alias=node7.example.org>"


def record(number: int, job: int, clock: str, text: str) -> str:
    return f"{number:03d} ({job:03d}.000.000) 2026-11-21 {clock} {text}\n...\n"


def submitted(job: int, clock: str) -> str:
    return record(0, job, clock, "Job submitted from host: <10.0.0.1:9618>")


def started(job: int, clock: str) -> str:
    slot = f"\n\tSlotName: slot1_1@node{job % 2}"
    return record(1, job, clock, f"Job executing on host: {HOST}{slot}")


def evicted(job: int, clock: str) -> str:
    return record(4, job, clock, "Job was evicted.\n\t(0) CPU times")


def completed(job: int, clock: str) -> str:
    return record(5, job, clock, "Job terminated.\n\t(1) Normal termination (return value 0)")


def image_size(job: int, clock: str) -> str:
    return record(6, job, clock, "Image size of job updated: 2588")


ONE = [
    submitted(1, "10:00:00"),
    started(1, "10:00:20"),
    image_size(1, "10:00:30"),
    evicted(1, "10:01:20"),
    started(1, "10:02:00"),
    completed(1, "10:04:00"),
]
TWO = [
    submitted(2, "10:00:10"),
    started(2, "10:01:10"),
    completed(2, "10:02:10"),
]


def ingest(*words: object) -> dict[str, Any]:
    told: dict[str, Any] = outrider("ingest", *words, "--json").json()
    sources = (sum(told["events"].values()), told["duplicates"], *told["ignored"].values(),
               *told["rejected"].values())  # fmt: skip
    assert told["records"] == sum(sources), "every record is exactly one thing"
    return told


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A short event log."""
    file = tmp_path / "one.log"
    file.write_text("".join(ONE))
    return file


@pytest.fixture
def two(tmp_path: Path) -> Path:
    """A second event log."""
    file = tmp_path / "two.log"
    file.write_text("".join(TWO))
    return file


def test_a_log_is_told_field_by_field(one: Path) -> None:
    told = ingest(one)
    assert set(told) >= FIELDS
    assert told["files"] == [str(one)]
    assert told["format"] == "htcondor"
    assert told["events"] == {"submitted": 1, "started": 2, "evicted": 1, "completed": 1}
    assert told["ignored"] == {"image_size": 1}
    assert (told["records"], told["duplicates"], told["rejected"]) == (6, 0, {})
    assert told["lines"] == sum(text.count("\n") for text in ONE)
    assert told["machines"] == 1
    assert told["jobs"]["completed"] == 1
    assert told["wait_s"]["all"]["mean"] == 20
    assert (told["goodput_s"], told["badput_s"], told["span_s"]) == (120, 60, 240)
    assert told["evictions"]["unknown"] == 1


def test_events_are_hashed_as_the_format_says(two: Path) -> None:
    base = 1_795_255_200  # 2026-11-21T10:00:00Z
    lines = sorted([
        f"submitted\t10.0.0.1#2.0\t{base + 10}\t\t\t\n",
        f"started\t10.0.0.1#2.0\t{base + 70}\tnode0\t1\t\n",
        f"completed\t10.0.0.1#2.0\t{base + 130}\t\t\t\n",
    ])  # fmt: skip
    assert ingest(two)["events_sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_a_file_given_twice_over_counts_once(one: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.log"
    copy.write_bytes(one.read_bytes())
    once, twice = ingest(one), ingest(one, copy)
    assert twice["duplicates"] == sum(once["events"].values())
    for same in ("events", "jobs", "wait_s", "goodput_s", "badput_s", "events_sha256"):
        assert twice[same] == once[same], same


def test_several_files_are_one_stream_in_the_order_of_time(
    one: Path, two: Path, tmp_path: Path
) -> None:
    whole = tmp_path / "whole.log"
    whole.write_text("".join(sorted(ONE + TWO, key=lambda text: text[28:36])))
    apart, together = ingest(one, two), ingest(whole)
    for same in ("events", "jobs", "wait_s", "evictions", "events_sha256", "span_s", "machines"):
        assert apart[same] == together[same], same
    assert apart["late"] == 0
    assert ingest(two, one)["events_sha256"] == apart["events_sha256"]


def test_the_size_of_chunks_changes_nothing(
    one: Path, two: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    big = ingest(one, two)
    monkeypatch.setattr(log_files, "CHUNK_BYTES", 37)
    small = ingest(one, two)
    assert {k: v for k, v in small.items() if k != "cpu_s"} == {
        k: v for k, v in big.items() if k != "cpu_s"
    }


def test_a_gzipped_log_holds_the_same(one: Path, tmp_path: Path) -> None:
    packed = tmp_path / "one.log.gz"
    packed.write_bytes(gzip.compress(one.read_bytes()))
    assert ingest(packed)["events_sha256"] == ingest(one)["events_sha256"]


def test_a_half_record_at_the_end_is_rejected(one: Path) -> None:
    with one.open("a") as file:
        file.write("005 (001.000.000) 2026-11-21 10:05:00 Job termin")
    told = ingest(one)
    assert told["rejected"] == {"incomplete record": 1}
    assert told["records"] == 7


def test_garbage_between_records_is_rejected_and_the_rest_read(one: Path) -> None:
    one.write_bytes(b"".join([ONE[0].encode(), b"\x00\xff\xfe not a record\n...\n",
                              *[text.encode() for text in ONE[1:]]]))  # fmt: skip
    told = ingest(one)
    assert told["rejected"] == {"garbage": 1}
    assert told["jobs"]["completed"] == 1


def test_an_empty_log_is_nothing_wrong(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    told = ingest(tmp_path / "empty")
    assert (told["records"], told["format"], told["span_s"]) == (0, None, 0)
    assert told["wait_s"]["all"]["mean"] is None


def test_jobs_that_nobody_started_are_told_too(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text(ONE[0] + TWO[0])
    told = ingest(log)
    assert told["jobs"]["unfinished"] == 2
    assert told["wait_s"]["all"]["censored_n"] == 2
    assert told["wait_s"]["all"]["mean"] is None


def yearless(text: str, day: str) -> str:
    return text.replace("2026-11-21", day)


def test_the_year_is_that_of_the_last_event(tmp_path: Path) -> None:
    log = tmp_path / "log"
    old = yearless(submitted(1, "23:59:00"), "12/31")
    log.write_text(old + yearless(started(1, "00:01:00") + completed(1, "00:02:00"), "01/01"))
    told = ingest(log, "--year", 2014)
    assert told["span_s"] == 180
    assert told["warnings"] == []
    os.utime(log, (1_388_600_000, 1_388_600_000))  # 1 January 2014
    guessed = outrider("ingest", log, "--json")
    assert guessed.json()["events_sha256"] == told["events_sha256"]
    assert "assumed to be in 2014" in guessed.err


def test_dates_without_zone_are_of_the_zone_given(one: Path) -> None:
    assert ingest(one)["events_sha256"] == ingest(one, "--timezone", "UTC")["events_sha256"]
    shifted = ingest(one, "--timezone", "Europe/Berlin")
    assert shifted["events_sha256"] != ingest(one)["events_sha256"]
    assert shifted["span_s"] == ingest(one)["span_s"]


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--format", "htcondr"), 'did you mean "htcondor"?'),
        (("--timezone", "Europe/Berlyn"), '"Europe/Berlyn" is not known'),
    ],
)
def test_a_wrong_option_is_refused(one: Path, words: tuple[str, ...], why: str) -> None:
    done = outrider("ingest", one, *words)
    assert done.code == 2
    assert why in done.err


def test_a_file_nobody_recognises_is_refused(tmp_path: Path) -> None:
    (tmp_path / "poem").write_text("Half a league, half a league,\nHalf a league onward,\n")
    done = outrider("ingest", tmp_path / "poem")
    assert done.code == 2
    assert "no reader recognises it; --format names one, known: htcondor" in done.err


def test_a_damaged_gzip_file_is_refused_by_name(one: Path, tmp_path: Path) -> None:
    packed = tmp_path / "cut.gz"
    packed.write_bytes(gzip.compress(one.read_bytes())[:-20])
    done = outrider("ingest", packed)
    assert done.code == 2
    assert f"{packed}: cannot be read to its end" in done.err


def test_people_see_who_waited_and_whose_work_was_lost(tmp_path: Path) -> None:
    records = tmp_path / "sacct"
    records.write_text(
        "JobID|User|Account|Submit|Start|End|State|NCPUS|NodeList\n"
        "1|ann|bio|2026-01-05T08:00:00|2026-01-05T08:10:00|2026-01-05T09:10:00|COMPLETED|4|n1\n"
        "2|bob|phys|2026-01-05T08:00:00|2026-01-05T09:00:00|2026-01-05T11:00:00|TIMEOUT|2|n2\n"
    )
    lines = [line.split() for line in outrider("ingest", str(records)).out.splitlines()]
    assert ["bio", "1", "10", "min", "10", "min", "4.0", "0.0"] in lines
    assert ["phys", "1", "60", "min", "60", "min", "0.0", "4.0"] in lines
    assert ["batch", "2", "35", "min", "58", "min", "4.0", "4.0"] in lines


def test_people_get_a_table(one: Path) -> None:
    done = outrider("ingest", one)
    assert done.code == 0
    assert "goodput [CPU h]" in done.out
    assert done.err == ""


REAL = ("data/condor/bologna_bdp1.log", "data/condor/htcondor_test_condor.log",
        "data/condor/utexas_texplore_no_sepa.log.gz", "peers/htcondor/samples/EventLog.json",
        "peers/htcondor/samples/EventLog.text", "peers/htcondor/samples/EventLog.xml",
        "peers/htcondor/samples/user-job.log")  # fmt: skip


@pytest.mark.parametrize("name", REAL)
def test_real_logs_are_read_whole(shared: Path, name: str) -> None:
    told = ingest(shared / name)
    assert told["rejected"] == {}
    assert sum(told["events"].values()) > 0
