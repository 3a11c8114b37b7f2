"""A log that a user writes can neither end, hold nor rename the jobs of another log."""

from pathlib import Path

import pytest

from outrider.api import NamedEvent, events
from outrider_adapters.logtail import filters
from outrider_adapters.logtail.filters import FOREIGN, Claims, LateHistory, parts_of
from tests.adapters.logtail.following import job_record, job_records, names
from tests.adapters.logtail.test_many_logs import Site, jobs, of_pool
from tests.adapters.readers.samples import SCHEDD, record
from tests.adapters.readers.test_pbs_records import ended, line, pairs

LATER = "2026-11-21 20:00:00"
ENDS = [5, 9, 12]
"""Completed, removed and held."""


def ends(number: int) -> bytes:
    """Records that end or hold a job in every way."""
    return b"".join(record(kind, f"{number:03d}.000.000", LATER) for kind in ENDS)


@pytest.mark.parametrize(
    "paths", [("*.log",), ("EventLog.log", "*.log"), ("*.log", "EventLog.log")]
)
def test_the_jobs_of_an_event_log_are_not_ended_by_another(
    tmp_path: Path, paths: tuple[str, ...]
) -> None:
    site = Site(tmp_path, *paths, start_at="beginning")
    site.write("EventLog.log", job_records(1, 3) + record(1, "001.000.000", LATER))
    site.read()
    site.write("mallory.log", job_record(1) + ends(1) + ends(2))
    site.write("aaa.log", job_record(2) + ends(3))
    assert site.read() == []
    assert site.rejected(FOREIGN) == 2 + 3 * len(ENDS)
    site.write("EventLog.log", record(5, "001.000.000", LATER))
    assert [event[1:3] for event in site.read()] == [(events.COMPLETED, f"{SCHEDD}#1.0")]


def test_an_event_log_that_is_named_without_a_pattern_has_the_word_of_its_schedd(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, "home/*/*.log", "EventLog", start_at="beginning")
    site.write("EventLog", job_records(1, 2))
    site.read()
    site.write("home/mallory/x.log", job_record(3) + ends(3))  # a job that is to come
    site.write("home/mallory/y.log", of_pool(job_record(3)))  # her own access point
    assert jobs(site.read()) == ["pool#3.0"]
    site.write("EventLog", job_record(3))
    assert [event[1:3] for event in site.read()] == [(events.SUBMITTED, f"{SCHEDD}#3.0")]


def test_a_named_log_takes_over_a_job_that_a_matching_one_told_of_first(tmp_path: Path) -> None:
    site = Site(tmp_path, "home/*.log", "EventLog", start_at="beginning")
    site.write("home/mallory.log", job_record(1))
    assert jobs(site.read()) == names(1, 1)
    site.write("EventLog", job_record(1))
    site.read()
    site.write("home/mallory.log", ends(1))
    assert site.read() == []


def test_users_logs_of_one_schedd_report_their_own_jobs_after_a_restart_too(tmp_path: Path) -> None:
    site = Site(tmp_path, "home/*/jobs/*.log", start_at="beginning")
    site.write("home/alice/jobs/a.log", job_record(1) + job_record(3))
    site.write("home/bob/jobs/a.log", job_record(2) + job_record(4))
    assert jobs(site.read()) == names(1, 4)
    site.begin(site.batches[-1].cursor)
    site.write("home/alice/jobs/a.log", ends(2))
    site.write("home/mallory/jobs/a.log", job_record(5) + ends(1) + ends(4))
    site.write("home/bob/jobs/a.log", record(1, "002.000.000", LATER))
    assert sorted(event[1:3] for event in site.read()) == sorted([
        (events.SUBMITTED, f"{SCHEDD}#5.0"), (events.STARTED, f"{SCHEDD}#2.0"),
    ])  # fmt: skip
    assert site.rejected(FOREIGN) == 3 * len(ENDS)


@pytest.mark.parametrize("suffix", [".old", ".1", ".20261121T031700"])
def test_rotated_files_are_the_same_log(tmp_path: Path, suffix: str) -> None:
    site = Site(tmp_path, "EventLog*", "other*", start_at="beginning")
    path = site.write("EventLog", job_records(1, 2))
    site.write("other", of_pool(job_record(1)))
    site.read()
    path.rename(path.with_name(f"EventLog{suffix}"))
    site.write("EventLog", record(1, "001.000.000", LATER) + record(1, "002.000.000", LATER))
    assert jobs(site.read()) == names(1, 2)
    assert not site.rejected(FOREIGN)


def test_two_access_points_in_one_log_and_two_named_logs_of_one_are_believed(
    tmp_path: Path,
) -> None:
    site = Site(tmp_path, "EventLog", "copy", start_at="beginning")
    site.write("EventLog", job_record(1) + of_pool(job_record(1)))
    site.read()
    site.write("copy", job_record(1) + of_pool(job_record(1)) + record(1, "001.000.000", LATER))
    assert len(site.read()) == 3
    assert not site.rejected(FOREIGN)


def test_the_jobs_of_a_log_that_was_deleted_are_free(tmp_path: Path) -> None:
    site = Site(tmp_path, "*.log", start_at="beginning")
    path = site.write("a.log", job_record(1))
    site.read()
    path.unlink()
    site.read()
    site.write("b.log", job_record(2) + record(5, "001.000.000", LATER))
    assert jobs(site.read()) == names(1, 2)


def test_the_days_of_an_accounting_log_are_one_and_another_folder_is_none(tmp_path: Path) -> None:
    site = Site(tmp_path, "*/2???????", start_at="beginning", format="pbs")
    site.write("accounting/20261121", line(0, "Q", "queue=long").encode())
    site.write("accounting/20261122", line(10, "S", pairs()).encode())
    told = site.read()
    assert {event[1] for event in told} == {events.SUBMITTED, events.STARTED}
    site.write("mallory/20261122", ended(90, 0).encode())
    assert site.read() == []
    site.write("accounting/20261122", ended(99, 0).encode())
    assert events.COMPLETED in {event[1] for event in site.read()}


def test_names_of_jobs_have_a_system_and_a_number() -> None:
    assert parts_of("ap1.example.org#12.0") == ("ap1.example.org", 12)
    assert parts_of("a#b#12.3") == ("a#b", 12)
    assert parts_of("campus:7_3") == ("campus", 7)
    assert parts_of("81[2].server.example.org") == ("server.example.org", 81)
    assert parts_of("12.0") == ("0", 12)
    assert parts_of("odd") == ("odd", 0)
    assert parts_of("") == ("", 0)


def told(system: str, *numbers: int) -> list[NamedEvent]:
    return [(0.0, events.SUBMITTED, f"{system}#{number}.0", None) for number in numbers]


def test_claims_are_bounded_and_the_log_with_most_of_them_loses_some(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(filters, "MOST_RANGES", 100)
    claims = Claims()
    assert claims.admit("a", "a", False, told("s", 1)) == (told("s", 1), 0)
    for number in range(10, 2_000, 2):
        claims.admit("m", "m", False, told("s", number))
        claims.admit("m", "m", False, told(f"system-{number}", number))
    assert claims.admit("m", "m", False, told("s", 1)) == ([], 1)
    assert len(repr(claims.save())) < 20_000


def test_claims_are_bounded_in_bytes_where_names_of_access_points_are_long() -> None:
    claims = Claims()
    long = [f"{'x' * 100_000}{number}#1.0" for number in range(50)]
    claims.admit("a", "a", False, [(1.0, events.RELEASED, job, None) for job in long])
    foreign = [(2.0, events.RELEASED, job, None) for job in long]
    assert claims.admit("b", "b", False, foreign) == ([], len(long)), "each stays a's"
    assert len(str(claims.save())) < 400 * len(long)


def test_an_event_log_takes_one_range_however_many_jobs_it_has() -> None:
    claims = Claims()
    claims.admit("a", "a", False, told("s", *range(1, 100_000)))
    assert claims.save()["systems"]["s"]["lasts"] == [99_999]
    claims.admit("b", "b", True, told("s", 500))  # a named log takes over
    assert claims.save()["systems"]["s"]["firsts"] == [1, 500, 501]


def test_late_history_keeps_what_is_still_there() -> None:
    def event(kind: int, job: str, extra: object = None) -> NamedEvent:
        return (float(kind), kind, job, extra)

    late = LateHistory()
    passed = late.reduce([
        event(events.SUBMITTED, "ended"), event(events.STARTED, "ended", ("m", 1)),
        event(events.COMPLETED, "ended"), event(events.COMPLETED, "older"),
        event(events.SUBMITTED, "evicted"), event(events.STARTED, "evicted", ("m", 1)),
        event(events.EVICTED, "evicted", "owner"),
        event(events.SUBMITTED, "runs"), event(events.STARTED, "runs", ("m", 1)),
        event(events.SUSPENDED, "runs"), event(events.RESUMED, "runs"),
        event(events.SUBMITTED, "held"), event(events.HELD, "held", "why"),
    ])  # fmt: skip
    assert [one[2] for one in passed] == ["older"]
    assert sorted(one[1:3] for one in late.standing()) == sorted([
        (events.SUBMITTED, "evicted"), (events.SUBMITTED, "held"), (events.HELD, "held"),
        (events.SUBMITTED, "runs"), (events.STARTED, "runs"),
    ])  # fmt: skip
