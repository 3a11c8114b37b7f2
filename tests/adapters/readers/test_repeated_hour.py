"""Clocks without a zone: the hour repeated in autumn, and the one left out in spring."""

import datetime as dt
import json
from collections.abc import Callable, Iterator
from zoneinfo import ZoneInfo

import pytest

from outrider.api import LogReader, ReaderOptions, events
from outrider_adapters.readers.htcondor import HTCondorLogReader
from outrider_adapters.readers.pbs import PBSAccountingReader
from outrider_adapters.readers.slurm import JobcompReader, SacctReader
from tests.adapters.readers.test_slurm_jobcomp import line

TURNS = {
    "Europe/Berlin in autumn": ("Europe/Berlin", dt.datetime(2026, 10, 25, 1, tzinfo=dt.UTC)),
    "Europe/Berlin in spring": ("Europe/Berlin", dt.datetime(2026, 3, 29, 1, tzinfo=dt.UTC)),
    "New York in autumn": ("America/New_York", dt.datetime(2026, 11, 1, 6, tzinfo=dt.UTC)),
    "New York in spring": ("America/New_York", dt.datetime(2026, 3, 8, 7, tzinfo=dt.UTC)),
}
turns = pytest.mark.parametrize(("zone", "turn"), TURNS.values(), ids=TURNS)
Clock = Callable[[float], dt.datetime]


def clock_of(zone: str) -> Clock:
    """Return the time that a wall clock shows."""
    return lambda time_s: dt.datetime.fromtimestamp(time_s, ZoneInfo(zone))


def stretch(turn: dt.datetime, minutes: int) -> Iterator[tuple[int, float, float]]:
    """Return runs of so many minutes that start every seven, three hours before and after."""
    for number in range(-26, 26):
        start_s = turn.timestamp() + number * 420
        yield 100 + number, start_s, start_s + minutes * 60


def in_order(turn: dt.datetime, minutes: int) -> list[tuple[float, int, bool]]:
    """Return (time, job, true if it starts) of all these runs, as in a log."""
    reported = [(start_s, job, True) for job, start_s, _ in stretch(turn, minutes)]
    return sorted(reported + [(end_s, job, False) for job, _, end_s in stretch(turn, minutes)])


def as_text(clock: Clock, time_s: float, job: int, starts: bool) -> bytes:
    number, words = (1, "Job executing on host: <10.0.0.1:9618>") if starts else (5, "terminated")
    return f"{number:03d} ({job}.000.000) {clock(time_s):%m/%d %H:%M:%S} {words}\n...\n".encode()


def as_iso_text(clock: Clock, time_s: float, job: int, starts: bool) -> bytes:
    number, words = (1, "Job executing on host: <10.0.0.1:9618>") if starts else (5, "terminated")
    return f"{number:03d} ({job}.000.000) {clock(time_s):%Y-%m-%d %H:%M:%S} {words}\n...\n".encode()


def as_json(clock: Clock, time_s: float, job: int, starts: bool) -> bytes:
    ad = {"Cluster": job, "Proc": 0, "EventTypeNumber": 1 if starts else 5,
          "EventTime": f"{clock(time_s):%Y-%m-%dT%H:%M:%S}", "SlotName": "slot1@n1"}  # fmt: skip
    return (json.dumps(ad) + "\n").encode()


def as_pbs(clock: Clock, time_s: float, job: int, starts: bool) -> bytes:
    letter = "S" if starts else "R"
    return f"{clock(time_s):%m/%d/%Y %H:%M:%S};{letter};{job}.s;user=u exec_host=n1/0\n".encode()


WRITERS: dict[Callable[[Clock, float, int, bool], bytes], type[LogReader]] = {
    as_text: HTCondorLogReader,
    as_iso_text: HTCondorLogReader,
    as_json: HTCondorLogReader,
    as_pbs: PBSAccountingReader,
}


@turns
@pytest.mark.parametrize("write", WRITERS, ids=lambda write: write.__name__)
@pytest.mark.parametrize("restarts", [False, True], ids=["at once", "with restarts"])
def test_a_log_in_order_is_read_at_its_true_times(
    write: Callable[[Clock, float, int, bool], bytes], zone: str, turn: dt.datetime, restarts: bool
) -> None:
    kind = WRITERS[write]
    reported = in_order(turn, 20)
    options = ReaderOptions(timezone=zone, modified_s=reported[-1][0])
    reader = kind(options)
    read: list[float] = []
    data = b""
    for time_s, job, starts in reported:
        data += write(clock_of(zone), time_s, job, starts)
        if restarts:
            reading = reader.read(data)
            read += [event[0] for event in reading.events if event[1] != events.SUBMITTED]
            data = data[reading.consumed :]
            saved = json.loads(json.dumps(reader.save()))
            reader = kind(options)
            reader.restore(saved)
    reading = reader.read(data, final=True)
    read += [event[0] for event in reading.events if event[1] != events.SUBMITTED]
    assert reading.rejected == {}
    assert read == [time_s for time_s, _, _ in reported]


def test_a_record_a_little_late_is_not_an_hour_late() -> None:
    turn = TURNS["Europe/Berlin in autumn"][1].timestamp()
    clock = clock_of("Europe/Berlin")
    times = [turn - 3, turn + 1, turn - 2, turn + 600, turn + 597]
    data = b"".join(as_iso_text(clock, time_s, 1, starts=False) for time_s in times)
    reading = HTCondorLogReader(ReaderOptions(timezone="Europe/Berlin")).read(data, final=True)
    assert [event[0] for event in reading.events] == times


def length_s(kind: type[LogReader], data: bytes, zone: str) -> float:
    reading = kind(ReaderOptions(timezone=zone)).read(data, final=True)
    assert reading.rejected == {}
    (start_s,) = (event[0] for event in reading.events if event[1] == events.STARTED)
    (end_s,) = (event[0] for event in reading.events if event[1] == events.COMPLETED)
    return end_s - start_s


@turns
@pytest.mark.parametrize("minutes", [5, 20, 59, 61, 200])
def test_no_run_of_slurm_ends_before_it_starts(zone: str, turn: dt.datetime, minutes: int) -> None:
    """Only a run that starts in the second hour and ends after it seems an hour longer."""
    clock = clock_of(zone)
    for _, start_s, end_s in stretch(turn, minutes):
        start, end = clock(start_s), clock(end_s)
        data = line({"SubmitTime": f"{start:%FT%T}", "EligibleTime": f"{start:%FT%T}",
                     "StartTime": f"{start:%FT%T}", "EndTime": f"{end:%FT%T}"})  # fmt: skip
        run_s = length_s(JobcompReader, data, zone)
        assert run_s >= 0
        if not start.fold:
            unclear = start < end and end.fold  # by what the clocks showed, a shorter run
            assert run_s == pytest.approx(end_s - start_s - 3600 * (unclear and minutes >= 60)), (
                start, end)  # fmt: skip


@turns
@pytest.mark.parametrize("minutes", [5, 20, 59, 61, 200])
def test_sacct_says_how_long_a_run_was_that_ended_in_such_an_hour(
    zone: str, turn: dt.datetime, minutes: int
) -> None:
    clock = clock_of(zone)
    head = b"JobID|State|Submit|Start|End|Elapsed|NodeList\n"
    elapsed = f"{minutes // 60:02d}:{minutes % 60:02d}:00"
    for _, start_s, end_s in stretch(turn, minutes):
        start, end = clock(start_s), clock(end_s)
        row = f"7|COMPLETED|{start:%FT%T}|{start:%FT%T}|{end:%FT%T}|{elapsed}|n1\n".encode()
        wrong = 3600 if start.fold and not end.fold else 0
        assert length_s(SacctReader, head + row, zone) in {end_s - start_s, end_s - start_s + wrong}


@pytest.mark.parametrize(("zone", "turn"), [TURNS[name] for name in TURNS if "autumn" in name])
def test_a_run_that_began_before_the_repetition_and_ended_in_it_is_not_rejected(
    zone: str, turn: dt.datetime
) -> None:
    start, end = (clock_of(zone)(turn.timestamp() + offset_s) for offset_s in (-600, 600))
    data = line({"SubmitTime": f"{start:%FT%T}", "EligibleTime": f"{start:%FT%T}",
                 "StartTime": f"{start:%FT%T}", "EndTime": f"{end:%FT%T}"})  # fmt: skip
    assert length_s(JobcompReader, data, zone) == 1200
