"""Lines of a PBS accounting file as in practice: oddly written, cut, damaged, in pieces."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.api import NamedEvent, ReaderOptions, Reading, events
from outrider_adapters.readers.pbs import PBSAccountingReader
from outrider_adapters.readers.pbs.reader import MAX_RECORD_BYTES
from outrider_adapters.readers.pbs.specs import parse

DAY = b"""\
11/21/2026 03:17:00;L;license;floating license hour:3 day:3 month:3 max:10
11/21/2026 03:17:01;Q;1.server;queue=long
11/21/2026 03:17:02;Q;2.server;user=bob group=g account="a b" ctime=1795231022 etime=0
11/21/2026 03:17:05;S;1.server;user=ann owner=ann@l ctime=1795231020 start=1795231025 exec_host=n1/0
11/21/2026 03:17:06;S;2.server;user=bob group=g ctime=1795231022 start=1795231026 exec_host=n2/0*4
11/21/2026 03:17:20;D;1.server;requestor=ann@l
11/21/2026 03:17:29;E;1.server;user=ann owner=ann@l ctime=1795231020 start=1795231025 \
exec_host=n1/0 end=1795231049 Exit_status=271
11/21/2026 03:17:31;R;2.server;
11/21/2026 03:17:40;D;3.server;requestor=ann@l
11/21/2026 03:19:00;S;2.server;user=bob group=g ctime=1795231022 start=1795231140 exec_host=n2/0*4
11/21/2026 03:20:00;E;2.server;user=bob group=g ctime=1795231022 start=1795231140 \
exec_host=n2/0*4 end=1795231200 Exit_status=0
"""


def read(data: bytes, final: bool = True) -> Reading:
    return PBSAccountingReader(ReaderOptions()).read(data, final)


# -- pairs ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("message", "pairs"),
    [
        ("a=1 b=2", {"a": "1", "b": "2"}),
        ("  a=1   b=2 ", {"a": "1", "b": "2"}),
        ('jobname="a b" queue=q', {"jobname": "a b", "queue": "q"}),
        ("jobname='say \"a b\"' queue=q", {"jobname": 'say "a b"', "queue": "q"}),
        ('account="x" queue=q', {"account": "x", "queue": "q"}),
        ('jobname="start 1=2" user=u', {"jobname": "start 1=2", "user": "u"}),
        ('jobname="never closed queue=q', {"jobname": '"never', "queue": "q"}),
        ("select=1:ncpus=4:mem=2gb", {"select": "1:ncpus=4:mem=2gb"}),
        ("note=of several words queue=q", {"note": "of", "queue": "q"}),
        ("etime=15start=19 end=20", {"etime": "15", "start": "19", "end": "20"}),
        ("ctime=1qtime=2etime=3start=4", {"ctime": "1", "qtime": "2", "etime": "3", "start": "4"}),
        ("a= b", {"a": ""}),
        ("", {}),
    ],
)
def test_pairs_are_found_however_they_are_written(message: str, pairs: dict[str, str]) -> None:
    assert parse(message) == pairs


def test_a_start_that_hangs_on_the_eligible_time_is_found() -> None:
    record = (
        b"10/02/2011 06:41:44;E;5.server;user=u group=g ctime=1317509574 qtime=1317509574 "
        b"etime=1317509574start=1317509945 exec_host=n1/5 end=1317534104 Exit_status=0\n"
    )
    assert [event[:2] for event in read(record).events] == [
        (1317509574.0, events.SUBMITTED),
        (1317509945.0, events.STARTED),
        (1317534104.0, events.COMPLETED),
    ]


def test_a_date_before_the_date_is_passed_over() -> None:
    assert read(b"20261121:" + DAY.splitlines(keepends=True)[3]).events


# -- whole files ------------------------------------------------------------------------------


def test_every_line_is_a_record_and_accounted_for() -> None:
    reading = read(DAY)
    assert (reading.records, reading.lines, reading.consumed) == (11, 11, len(DAY))
    assert reading.ignored == {"licence": 1, "deletion_of_run": 1}
    assert reading.rejected == {}
    assert sorted((event[2], events.KIND_NAMES[event[1]]) for event in reading.events) == [
        ("1.server", "removed"),
        ("1.server", "started"),
        ("1.server", "started"),
        ("1.server", "submitted"),
        ("1.server", "submitted"),
        ("1.server", "submitted"),
        ("2.server", "completed"),
        ("2.server", "evicted"),
        ("2.server", "started"),
        ("2.server", "started"),
        ("2.server", "started"),
        ("2.server", "submitted"),
        ("2.server", "submitted"),
        ("2.server", "submitted"),
        ("2.server", "submitted"),
        ("3.server", "removed"),
    ]


@pytest.mark.parametrize("size", [1, 7, 64, 200, 500])
def test_a_file_in_pieces_gives_what_it_gives_whole(size: int) -> None:
    reader = PBSAccountingReader(ReaderOptions())
    pieces: list[NamedEvent] = []
    records, rest = 0, b""
    for start in range(0, len(DAY), size):
        rest += DAY[start : start + size]
        reading = reader.read(rest)
        rest = rest[reading.consumed :]
        pieces += reading.events
        records += reading.records
        saved = reader.save()
        reader = PBSAccountingReader(ReaderOptions())
        reader.restore(saved)
    last = reader.read(rest, final=True)
    assert pieces + last.events == read(DAY).events
    assert records + last.records == read(DAY).records


def test_windows_line_ends_and_blank_lines_change_nothing() -> None:
    reading = read(DAY.replace(b"\n", b"\r\n\r\n"))
    assert reading.events == read(DAY).events
    assert (reading.records, reading.lines) == (11, 22)


def test_half_a_last_line_waits_for_its_rest() -> None:
    for final in (False, True):
        reading = read(DAY + b"11/21/2026 03:21:00;S;4.server;user=u", final)
        assert reading.consumed == len(DAY)
        assert reading.events == read(DAY).events


def test_what_never_ends_a_line_is_given_up() -> None:
    reading = read(b"x" * (MAX_RECORD_BYTES + 1), final=False)
    assert (reading.consumed, reading.rejected) == (MAX_RECORD_BYTES + 1, {"garbage": 1})


@pytest.mark.parametrize(
    ("head", "known"),
    [
        (DAY, True),
        (b"\n\n" + DAY, True),
        (b"20261121:" + DAY, True),
        (b"half of a record\n" + DAY, True),
        (b"11/21/2026 03:17:01;0100;Server@s;Job;1.server;enqueuing\n", False),  # a server log
        (b"000 (001.000.000) 11/21 03:17:00 Job submitted\n...\n", False),
        (b"JobId=1 UserId=u(1) StartTime=2026-11-21T03:00:47\n", False),
        (b"", False),
    ],
)
def test_a_file_is_recognised_by_its_records(head: bytes, known: bool) -> None:
    assert PBSAccountingReader.recognises(head) is known


# -- damage -----------------------------------------------------------------------------------


def check_sums(data: bytes, cut: int) -> None:
    """Check that every line is an event, ignored or rejected, and that times are plausible."""
    reader = PBSAccountingReader(ReaderOptions())
    first = reader.read(data[:cut])
    second = reader.read(data[first.consumed :], final=True)
    whole = first.consumed + second.consumed
    lines = [line for line in data[:whole].split(b"\n") if line.decode("utf-8", "replace").strip()]
    assert first.records + second.records == len(lines)
    others = sum(
        sum(counts.values())
        for reading in (first, second)
        for counts in (reading.ignored, reading.rejected)
    )
    assert others <= len(lines)
    reported = [*first.events, *second.events]
    assert all(event[1] == events.REMOVED or event[2] for event in reported)
    assert all(abs(event[0]) < 1e12 for event in reported)
    if others == len(lines):
        assert reported == []


@given(data=st.binary(max_size=400), cut=st.integers(0, 400))
def test_arbitrary_bytes_never_raise(data: bytes, cut: int) -> None:
    check_sums(DAY[:200] + data, cut)


@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=20)), max_size=6
    ),
    cut=st.integers(0, 1200),
)
def test_a_damaged_file_never_raises(changes: list[tuple[float, int, bytes]], cut: int) -> None:
    data = DAY
    for where, size, put in changes:
        at = int(where * len(data))
        data = data[:at] + put + data[at + size :]
    check_sums(data, min(cut, len(data)))


@given(
    message=st.text(alphabet="0123456789=+*/-:,.()\"' startendcimexoh_XRLpn\u0662", max_size=200),
    letter=st.sampled_from("QSERDACMzrB"),
)
def test_what_looks_almost_like_a_record_never_raises(message: str, letter: str) -> None:
    check_sums(f"11/21/2026 03:17:00;{letter};7.server;{message}\n".encode() + DAY, 100)
