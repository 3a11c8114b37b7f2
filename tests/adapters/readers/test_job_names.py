"""Names of the jobs of an HTCondor log: by the schedd, if a record names it."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from outrider.api import ReaderOptions, log_name_of
from outrider.replay.log_files import LogFile, ingest
from outrider_adapters.readers.htcondor import HTCondorLogReader
from tests.adapters.logtail.following import Followed
from tests.adapters.readers import samples
from tests.adapters.readers.samples import ad, record

FORMS: dict[str, Callable[[list[samples.Ad]], bytes]] = {
    "json": samples.as_json,
    "xml": samples.as_xml,
}
AP1 = "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=ap1.example.org&noUDP&sock=schedd_1_43af>"
AP2 = "<10.0.0.2:9618?addrs=10.0.0.2-9618&alias=ap2.example.org&noUDP&sock=schedd_7_9c1d>"


EXECUTING = "Job executing on host:"


def submission(host: str, job: str = "001.000.000") -> bytes:
    return record(0, job, words=f"Job submitted from host: {host}")


def names(data: bytes, **options: Any) -> list[str]:
    reading = HTCondorLogReader(ReaderOptions(**options)).read(data, final=True)
    return [event[2] for event in reading.events]


@pytest.mark.parametrize(
    ("host", "schedd"),
    [
        (AP1, "ap1.example.org"),
        ("<10.0.0.1:9618?addrs=10.0.0.1-9618&noUDP&sock=2954_1742_3>", "10.0.0.1"),
        ("<128.105.175.133:1027>", "128.105.175.133"),
        ("<10.0.0.1:9618?alias=ap1.example.org&sock=schedd_b>", "schedd_b@ap1.example.org"),
        ("<[2001:db8::7]:9618?noUDP>", "2001:db8::7"),
    ],
)
def test_a_schedd_is_named_by_the_address_from_which_jobs_were_submitted(
    host: str, schedd: str
) -> None:
    assert names(submission(host) + record(5), log_name="EventLog") == [f"{schedd}#1.0"] * 2


@pytest.mark.parametrize("form", FORMS)
def test_ads_tell_the_schedd_as_text_does(form: str) -> None:
    log = FORMS[form]([ad(0, 0, "17:00", SubmitHost=AP1), ad(5, 0, "17:09")])
    assert names(log, log_name="EventLog") == ["ap1.example.org#1.0"] * 2


def test_what_came_before_the_first_submission_is_of_the_same_schedd() -> None:
    assert names(record(1) + record(5) + submission(AP1, "002.000.000")) == [
        "ap1.example.org#1.0",
        "ap1.example.org#1.0",
        "ap1.example.org#2.0",
    ]


@pytest.mark.parametrize("form", ["text", *FORMS])
def test_the_schedd_s_own_name_wins_over_its_address(form: str) -> None:
    about = {"TriggerEventTypeNumber": 0, "GlobalJobId": "submit@ap1#1.0#1795231020"}
    ads = [ad(0, 0, "17:00", SubmitHost=AP1), ad(28, 0, "17:00", **about), ad(5, 0, "17:09")]
    log = samples.as_text(ads) if form == "text" else FORMS[form](ads)
    assert names(log, system="other") == ["submit@ap1#1.0"] * 2


def test_a_person_s_word_wins_over_an_address() -> None:
    assert names(submission(AP1), system="submit@ap1") == ["submit@ap1#1.0"]


def test_the_file_s_name_stands_where_no_record_names_the_schedd() -> None:
    assert names(record(5), log_name="EventLog") == ["EventLog#1.0"]


def test_jobs_of_two_schedds_in_one_log_are_told_apart() -> None:
    log = submission(AP1) + submission(AP2) + record(1, "001.000.000") + submission(AP1, "2.0.0")
    log += record(5, "002.000.000")
    assert names(log) == [
        "ap1.example.org#1.0",
        "ap2.example.org#1.0",
        "ap2.example.org#1.0",
        "ap1.example.org#2.0",
        "ap1.example.org#2.0",
    ]


def test_a_job_keeps_its_name_when_a_submission_tells_the_schedd_at_last(tmp_path: Path) -> None:
    log = Followed(tmp_path / "EventLog")
    log.append(record(1, "001.000.000"))
    log.settle()
    log.append(submission(AP1, "002.000.000") + record(5, "001.000.000"))
    log.restart()
    log.settle()
    assert log.jobs == ["EventLog#1.0", "ap1.example.org#2.0", "EventLog#1.0"]


def test_a_log_that_was_rotated_is_the_same_schedd_s(tmp_path: Path) -> None:
    log = Followed(tmp_path / "EventLog")
    log.append(submission(AP1))
    log.settle()
    log.rename()
    log.restart()
    log.append(record(5))
    log.settle()
    log.settle()
    assert log.jobs == ["ap1.example.org#1.0"] * 2


@pytest.mark.parametrize("piece", [40, 170, 1000])
def test_the_size_of_pieces_changes_no_name(piece: int) -> None:
    log = submission(AP1) + record(1) + submission(AP2) + record(5)
    reader, rest, found = HTCondorLogReader(ReaderOptions(log_name="log")), b"", []
    for start in range(0, len(log), piece):
        rest += log[start : start + piece]
        reading = reader.read(rest)
        found += [event[2] for event in reading.events]
        rest = rest[reading.consumed :]
        saved = json.loads(json.dumps(reader.save()))
        reader = HTCondorLogReader(ReaderOptions(log_name="log"))
        if saved["form"]:
            reader.restore(saved)
    found += [event[2] for event in reader.read(rest, final=True).events]
    assert found == names(log)


@pytest.mark.parametrize(
    "name", ["EventLog", "EventLog.old", "EventLog.3", "EventLog-20261121", "EventLog.1.gz"]
)
def test_a_rotated_file_has_the_log_s_name(name: str) -> None:
    assert log_name_of(name) == "EventLog"


# -- several logs at once ------------------------------------------------------------------------


def life(host: str, start_minute: int) -> list[bytes]:
    """Return the records of a job's life by a schedd."""
    return [
        record(0, date="2026-11-21 03:00:00", words=f"Job submitted from host: {host}"),
        record(
            1,
            date=f"2026-11-21 03:{start_minute}:00",
            words=f"{EXECUTING} <10.0.1.{start_minute}:9618>",
        ),
        record(5, date="2026-11-21 03:59:00"),
    ]


@pytest.fixture
def reported(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """Ingest some logs by their names."""

    def of_logs(**logs: bytes) -> dict[str, Any]:
        for name, data in logs.items():
            (tmp_path / name).write_bytes(data)
        return ingest([LogFile(tmp_path / name) for name in logs])

    return of_logs


def test_the_logs_of_two_access_points_count_both(reported: Callable[..., dict[str, Any]]) -> None:
    report = reported(one=b"".join(life(AP1, 10)), two=b"".join(life(AP2, 20)))
    assert report["jobs"]["submitted"] == report["jobs"]["completed"] == 2
    assert (report["duplicates"], report["repairs"]) == (0, {})
    assert report["goodput_s"] == 60 * (49 + 39)


def test_two_logs_of_one_access_point_count_its_jobs_once(
    reported: Callable[..., dict[str, Any]],
) -> None:
    own = b"".join(life(AP1, 10))
    pool = b"".join(life(AP1, 10)) + b"".join(life(AP2, 20))
    report = reported(user_log=own, EventLog=pool)
    assert report["jobs"]["completed"] == 2
    assert (report["duplicates"], report["repairs"]) == (3, {})


def test_logs_that_name_no_schedd_are_two_access_points(
    reported: Callable[..., dict[str, Any]],
) -> None:
    headless = b"".join(life(AP1, 10)[1:])
    report = reported(one=headless, two=headless)
    assert (report["jobs"]["completed"], report["duplicates"]) == (2, 0)
    again = reported(**{"EventLog": headless, "EventLog.old": headless})
    assert (again["jobs"]["completed"], again["duplicates"]) == (1, 2)
