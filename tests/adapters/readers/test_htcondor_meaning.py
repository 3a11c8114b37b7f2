"""Events of the records of an HTCondor log, in each of its three forms."""

from collections.abc import Callable
from typing import Any

import pytest

from outrider.api import JobSpec, NamedEvent, ReaderOptions, Reading, events
from outrider_adapters.readers.htcondor import HTCondorLogReader
from outrider_adapters.readers.htcondor.event_mapping import IGNORED_NAMES, JOB_EVENTS
from outrider_adapters.readers.htcondor.job_ads import UNKNOWN_HOST, machine_of_run
from tests.adapters.readers import samples
from tests.adapters.readers.samples import RUN, SCHEDD, record

FORMS: dict[str, Callable[[list[samples.Ad]], bytes]] = {
    "text": samples.as_text,
    "json": samples.as_json,
    "compact json": samples.as_compact_json,
    "xml": samples.as_xml,
    "xml document": samples.as_xml_document,
}
AT_17 = 1_795_231_020  # 2026-11-21 03:17:00 UTC


def read(data: bytes, **options: Any) -> Reading:
    reading = HTCondorLogReader(ReaderOptions(**options)).read(data, final=True)
    assert reading.consumed == len(data)
    told = len(reading.events) + sum(reading.ignored.values()) + sum(reading.rejected.values())
    assert told == reading.records
    return reading


def told(data: bytes, **options: Any) -> list[tuple[int, str, str, Any]]:
    return [
        (int(time_s) - AT_17, events.KIND_NAMES[kind], job, extra)
        for time_s, kind, job, extra in read(data, **options).events
    ]


ALICES, BOBS = f"{SCHEDD}#1.0", f"{SCHEDD}#1.1"
EXPECTED = [
    (0, "submitted", ALICES, JobSpec(user="alice", vo="physics", cpus=2)),
    (0, "submitted", BOBS, JobSpec(user="bob")),
    (2, "started", ALICES, ("m1@node7.example.org", 2, "slot1_2")),
    (2, "started", BOBS, ("node8", 2, "slot2")),
    (4, "suspended", ALICES, None),
    (5, "resumed", ALICES, None),
    (6, "evicted", BOBS, "held"),
    (6, "held", BOBS, "via condor_hold (by user bob)"),
    (8, "released", BOBS, None),
    (9, "started", BOBS, ("node7.example.org", 2, "slot1_2")),
    (10, "evicted", BOBS, "failed_start"),
    (12, "started", BOBS, ("node7.example.org", 2, "slot1_2")),
    (13, "evicted", BOBS, "unknown"),
    (15, "removed", BOBS, "removed"),
    (20, "completed", ALICES, None),
]


@pytest.mark.parametrize("form", FORMS)
def test_the_same_run_gives_the_same_events_in_every_form(form: str) -> None:
    data = FORMS[form](RUN)
    assert HTCondorLogReader.recognises(data[:4096])
    assert told(data) == EXPECTED
    reading = read(data)
    assert reading.records == len(RUN)
    assert reading.ignored == {"generic": 1, "job_ad_information": 6, "image_size": 2}
    assert reading.rejected == {}


@pytest.mark.parametrize("form", FORMS)
def test_a_log_in_pieces_gives_what_it_gives_whole(form: str) -> None:
    data = FORMS[form](RUN)
    for size in (1, 7, 64, 500, 1500):
        reader = HTCondorLogReader(ReaderOptions())
        pieces: list[NamedEvent] = []
        records, rest = 0, b""
        for start in range(0, len(data), size):
            rest += data[start : start + size]
            reading = reader.read(rest)
            rest = rest[reading.consumed :]
            pieces += reading.events
            records += reading.records
            saved = reader.save()
            reader = HTCondorLogReader(ReaderOptions())
            reader.restore(saved)
        last = reader.read(rest, final=True)
        assert pieces + last.events == read(data).events
        assert records + last.records == len(RUN)


@pytest.mark.parametrize("form", FORMS)
def test_windows_line_ends_change_nothing(form: str) -> None:
    data = FORMS[form](RUN)
    assert read(data.replace(b"\n", b"\r\n")).events == read(data).events


def test_a_half_record_waits_for_its_rest() -> None:
    whole, half = record(0) + record(5, date="2026-11-21 03:18:00"), record(0, "002.000.000")[:-6]
    reading = HTCondorLogReader(ReaderOptions()).read(whole + half, final=True)
    assert reading.consumed == len(whole)
    assert [event[1] for event in reading.events] == [events.SUBMITTED, events.COMPLETED]


def test_a_last_line_of_dots_needs_no_line_end() -> None:
    assert len(read(record(0)[:-1]).events) == 1


def test_what_may_be_explained_waits_until_the_log_moves_on() -> None:
    reader = HTCondorLogReader(ReaderOptions())
    start = record(1, date="2026-11-21 03:17:00")
    assert reader.read(start).consumed == 0
    later = start + record(6, date="2026-11-21 03:17:01") + record(6, date="2026-11-21 03:17:02")
    assert [event[1] for event in reader.read(later).events] == [events.STARTED]


@pytest.mark.parametrize(("number", "reason"), [(9, "removed"), (12, "held")])
def test_a_run_that_ends_in_the_second_of_a_removal_or_hold_ended_by_it(
    number: int, reason: str
) -> None:
    others = b"".join(record(6, f"{other:03d}.000.000") for other in range(2, 200))
    log = record(1) + record(4) + others + record(number)
    assert told(log)[1][1:] == ("evicted", "1.0", reason)
    log = record(1) + record(4) + record(number, date="2026-11-21 03:17:01")
    assert told(log)[1][1:] == ("evicted", "1.0", "unknown")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        ("Job was held.\n\tError from m1:  no\tsuch file\n\tCode 6 Subcode 2",
         "Error from m1: no such file"),
        ("Job was held.\n\t\x1b[2J\x07 gone\n\tCode 1 Subcode 0", "[2J gone"),
        ("Job was held.\n\tReason unspecified\n\tCode 0 Subcode 0", None),
        ("Job was held.\n\tCode 21 Subcode 0", None),
        ("Job was held.", None),
        (f"Job was held.\n\t{'x' * 100_000}", "x" * 300),
    ],
)  # fmt: skip
def test_a_hold_says_why_in_one_line(words: str, why: str | None) -> None:
    assert told(record(12, words=words)) == [(0, "held", "1.0", why)]


def test_a_removal_of_another_job_explains_nothing() -> None:
    log = record(4) + record(9, "002.000.000")
    assert told(log)[0] == (0, "evicted", "1.0", "unknown")


def test_the_code_in_a_job_ad_tells_a_failed_start() -> None:
    ads = [samples.ad(4, 0, "17:00"), samples.about(4, 0, "17:00", VacateReasonCode=6)]
    for form in FORMS.values():
        assert told(form(ads)) == [(0, "evicted", "1.0", "failed_start")]


def test_a_shadow_exception_and_a_failed_reconnection_end_the_run() -> None:
    assert told(record(7)) == [(0, "evicted", "1.0", "unknown")]
    assert told(record(7) + record(12))[0] == (0, "evicted", "1.0", "held")
    log = record(22) + record(24, date="2026-11-21 03:17:01")
    assert told(log) == [(0, "disconnected", "1.0", None), (1, "evicted", "1.0", "unknown")]


def test_a_failed_reconnection_that_an_eviction_repeats_is_one_end_of_one_run() -> None:
    reading = read(record(24) + record(4))
    assert [event[1] for event in reading.events] == [events.EVICTED]
    assert reading.ignored == {"reconnect_failed": 1}


@pytest.mark.parametrize("number", range(60))
def test_every_number_is_an_event_or_ignored_by_name(number: int) -> None:
    reading = read(record(number))
    assert reading.rejected == {}
    if number in JOB_EVENTS:
        assert len(reading.events) == 1
    else:
        assert reading.ignored == {IGNORED_NAMES.get(number, f"event_{number:03d}"): 1}


def test_job_ids_are_plain_numbers() -> None:
    jobs = [event[2] for event in read(record(0, "2758.012.000") + record(0, "001.000.003")).events]
    assert jobs == [f"{SCHEDD}#2758.12", f"{SCHEDD}#1.0.3"]


@pytest.mark.parametrize(
    ("slot", "address", "machine"),
    [
        ("slot1@m1@node", "<10.0.0.1:9618>", "m1@node"),
        ("slot1_2@node", "<10.0.0.1:9618?alias=other&sock=startd_1_2ab>", "node"),
        ("", "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=node7&sock=2153_abe6_3>", "node7"),
        ("", "<10.0.3.18:9618?addrs=10.0.3.18-9618+[--1]-9618&noUDP>", "10.0.3.18"),
        ("", "<128.105.144.30:32794>", "128.105.144.30"),
        ("", "<[2001:db8::7]:9618?noUDP>", "2001:db8::7"),
        ("slot2@host", "<10.0.0.1:9618?alias=host&sock=m1>", "m1@host"),
        ("", "<10.0.0.5:9618?alias=ap1&sock=schedd_1_43af>", "access point ap1"),
        ("", "<10.0.0.5:9618?alias=ap1&sock=starter_31_979a_42>", "access point ap1"),
        ("", "batch slurm", "batch slurm"),
        ("", "", UNKNOWN_HOST),
    ],
)
def test_a_machine_is_named_by_slot_then_alias_then_address(
    slot: str, address: str, machine: str
) -> None:
    assert machine_of_run(slot, address) == machine


def test_garbage_is_rejected_and_hides_no_record_after_it() -> None:
    for garbage in (b"what is this\n", b"\x00" * 4096, b"\xff\xfe\n...\n", b"000 (1.0"):
        reading = read(record(0) + garbage + record(5))
        assert [event[1] for event in reading.events] == [events.SUBMITTED, events.COMPLETED]
        assert reading.rejected == {"garbage": 1}


def test_a_record_cut_short_is_rejected_and_the_next_is_read() -> None:
    reading = read(samples.header(4).encode()[:60] + b"\n" + record(5))
    assert [event[1] for event in reading.events] == [events.COMPLETED]
    assert reading.rejected == {"cut_short": 1}
    for form in (samples.as_json, samples.as_xml):
        whole = form([samples.ad(5, 0, "17:00")])
        reading = read(form([samples.ad(0, 0, "17:00")])[:40] + b"\n" + whole)
        assert [event[1] for event in reading.events] == [events.COMPLETED]
        assert reading.rejected == {"cut_short": 1}


def test_an_ad_without_what_it_needs_is_rejected_by_reason() -> None:
    def rejected(**change: Any) -> dict[str, int]:
        one = {**samples.ad(0, 0, "17:00"), **change}
        return read(samples.as_json([one]), year=2026).rejected

    assert rejected(EventTypeNumber="zero") == {"no_number": 1}
    assert rejected(EventTime="yesterday") == {"date": 1}
    assert rejected(Cluster=None) == {"no_job": 1}
    assert read(b'{"EventTypeNumber": }\n').rejected == {"no_ad": 1}


def test_words_in_another_encoding_do_not_cost_the_record() -> None:
    one = samples.as_json([samples.ad(9, 0, "17:00", Reason="REASON")])
    assert len(read(one.replace(b"REASON", b"gel\xf6scht")).events) == 1


def test_endless_garbage_does_not_wait_for_ever() -> None:
    reader = HTCondorLogReader(ReaderOptions())
    reader.read(record(0))
    garbage = b"x" * (2 << 20)
    reading = reader.read(garbage, final=True)
    assert (reading.consumed, reading.rejected) == (len(garbage), {"garbage": 1})
