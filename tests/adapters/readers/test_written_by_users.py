"""Records with text of users: a record with two readings is rejected and counted."""

import json
from typing import Any

import pytest

from outrider.api import LogReader, NamedEvent, ReaderOptions, Reading, events
from outrider_adapters.readers.htcondor import HTCondorLogReader
from outrider_adapters.readers.pbs import PBSAccountingReader
from outrider_adapters.readers.slurm import JobcompReader, SacctReader
from tests.adapters.readers import samples
from tests.adapters.readers.test_slurm_jobcomp import LIFE, line

FORGED = (
    " JobState=COMPLETED Partition=batch TimeLimit=9 StartTime=2026-11-21T11:00:40 "
    "EndTime=2026-11-21T17:00:40 NodeList=node[01-02] NodeCnt=2 ProcCnt=999"
)
VICTIM = "JobId=5 UserId=bob(1002) GroupId=users(100) Name=x"


def read(kind: type[LogReader], data: bytes) -> Reading:
    reading = kind(ReaderOptions()).read(data, final=True)
    assert reading.consumed == len(data)
    return reading


def reported(reading: Reading) -> list[tuple[str, str]]:
    return [(events.KIND_NAMES[kind], job) for _, kind, job, _ in reading.events]


# -- Slurm's job completion log ----------------------------------------------------------------


def test_a_job_name_with_a_whole_record_of_a_run_is_refused() -> None:
    forged = line({"Name": "x" + FORGED})
    reading = read(JobcompReader, forged + line())
    assert reading.rejected == {"ambiguous": 1}
    assert len(reading.events) == len(LIFE)
    assert {extra[1] for _, kind, _, extra in reading.events if kind == events.STARTED} == {16}


@pytest.mark.parametrize(
    "change",
    [
        {"WorkDir": "/tmp/x" + FORGED},
        {"WorkDir": "/tmp/ ReservationName= Account=root SubmitTime=Unknown"},
        {"WorkDir": "/tmp/ ReservationName= ArrayJobId=1 ArrayTaskId=2"},
        {"WcKey": "x SubmitTime=2020-01-01T00:00:00"},
        {"WcKey": "x Cluster=other"},
    ],
)
def test_a_folder_or_key_with_pairs_that_count_is_refused(change: dict[str, str]) -> None:
    reading = read(JobcompReader, line(change))
    assert (reading.events, reading.rejected) == ([], {"ambiguous": 1})


def test_what_a_log_before_folders_ended_with_pairs_says_is_not_asked_of_the_folder() -> None:
    behind = ("ReservationName", "Tres", "Account", "QOS", "WcKey", "Cluster", "SubmitTime",
              "EligibleTime", "DerivedExitCode", "ExitCode")  # fmt: skip
    reading = read(JobcompReader, line({"WorkDir": "/a Account=root Cluster=c"}, behind))
    assert {(job, extra.vo) for _, kind, job, extra in reading.events if kind == events.SUBMITTED} \
        == {("1003", "users")}  # fmt: skip


def test_lines_between_the_halves_of_a_record_are_refused() -> None:
    forged = line({"Name": f"x\n{VICTIM}{FORGED}\n{VICTIM}{FORGED}\ny"})
    reading = read(JobcompReader, line() + forged + line({"JobId": "1004"}))
    assert {job for _, job in reported(reading)} == {"1003", "1004"}
    assert reading.rejected == {"garbage": 1, "in_a_broken_record": 3}
    assert reading.lines == 6


def test_half_a_record_waits_for_its_other_half() -> None:
    data = line() + line({"Name": f"x\n{VICTIM}{FORGED}\ny"})
    for cut in range(len(line()), len(data)):
        reader = JobcompReader(ReaderOptions())
        first = reader.read(data[:cut])
        second = reader.read(data[first.consumed :])
        assert {job for _, _, job, _ in first.events + second.events} == {"1003"}, cut


def test_half_a_record_without_its_other_half_costs_nobody_else_a_record() -> None:
    """Read half a record, as left by a full disk or a name that looks like one."""
    others = b"".join(line({"JobId": str(number)}) for number in range(2000, 2070))
    reader = JobcompReader(ReaderOptions())
    reading = reader.read(line()[:60] + b"\n" + others)
    assert len({job for _, _, job, _ in reading.events}) == 70
    assert reading.rejected == {"garbage": 1}


# -- sacct -P ----------------------------------------------------------------------------------

HEAD = b"JobID|JobName|User|State|Start|End|AllocCPUS\n"
ROW = b"%b|%b|%b|COMPLETED|2026-11-21T03:01:00|2026-11-21T03:11:00|2\n"


def test_bars_in_a_job_name_stay_in_it() -> None:
    reading = read(SacctReader, HEAD + ROW % (b"7", b"a|root|FAILED|||9", b"bob"))
    assert {extra.user for _, kind, _, extra in reading.events if kind == events.SUBMITTED} \
        == {"bob"}  # fmt: skip
    assert reading.rejected == {}
    assert "jobname" in reading.warnings[0]


def test_bars_in_one_of_two_columns_that_users_write_are_refused() -> None:
    head = b"JobID|JobName|State|End|AllocCPUS|Comment\n"
    good = b"7|a|COMPLETED|2026-11-21T03:11:00|2|c\n"
    forged = b"8|a|COMPLETED|2026-11-21T03:11:00|2|b|COMPLETED|2026-11-21T03:11:00|999|c\n"
    reading = read(SacctReader, head + good + forged)
    assert {job for _, job in reported(reading)} == {"7"}
    assert reading.rejected == {"ambiguous": 1}


def test_a_row_too_long_without_any_such_column_is_refused_and_sacct_p_is_not() -> None:
    head = b"JobID|State|End\n"
    reading = read(SacctReader, head + b"7|COMPLETED|2026-11-21T03:11:00|\n"
                   b"8|COMPLETED|2026-11-21T03:11:00|9\n")  # fmt: skip
    assert {job for _, job in reported(reading)} == {"7"}
    assert reading.rejected == {"ambiguous": 1}


def test_rows_that_a_line_end_in_a_name_makes_up_are_refused() -> None:
    made_up = ROW % (b"5", b"x", b"victim")
    reading = read(
        SacctReader,
        HEAD + ROW % (b"7", b"a", b"bob") + ROW % (b"8", b"x\n" + made_up + b"y", b"eve")
        + ROW % (b"9", b"a", b"bob"),
    )  # fmt: skip
    assert {job for _, job in reported(reading)} == {"7", "9"}
    assert reading.rejected == {"garbage": 1, "in_a_broken_record": 2}


# -- PBS ---------------------------------------------------------------------------------------

PBS = (
    b"11/21/2026 03:17:00;E;7.s;user=bob group=g account=%b jobname=%b ctime=1795228000 "
    b"start=1795228100 exec_host=n1/0 end=1795231020 Exit_status=0 Resource_List.x=%b\n"
)


def test_plain_names_of_pbs_are_read() -> None:
    reading = read(PBSAccountingReader, PBS % (b'"a b"', b"x=y", b"1"))
    assert reading.rejected == {}
    assert [name for name, _ in reported(reading)] == ["submitted", "started", "completed"]


@pytest.mark.parametrize(
    "names",
    [
        (b"x user=root", b"n", b"1"),
        (b"x exec_host=n2/0*999", b"n", b"1"),
        (b'"x user=root"', b"n", b"1"),
        (b"x", b'"start=1 end=2"', b"1"),
        (b'"x', b"n", b'y" exec_host=n2/0*999'),
        (b"x", b"n", b"1 exec_host=n2/0*999 end=1795239999"),
    ],
)
def test_accounts_names_and_requests_of_pbs_that_hold_pairs_are_refused(
    names: tuple[bytes, ...],
) -> None:
    reading = read(PBSAccountingReader, PBS % names + PBS % (b"a", b"b", b"c"))
    assert reading.rejected == {"ambiguous": 1}
    assert [name for name, _ in reported(reading)] == ["submitted", "started", "completed"]


# -- HTCondor ----------------------------------------------------------------------------------


def starts(reading: Reading) -> list[NamedEvent]:
    return [event for event in reading.events if event[1] == events.STARTED]


def test_an_ad_in_json_that_says_twice_whose_it_is_is_refused() -> None:
    ad = json.dumps(samples.RUN[5])
    twice = ad[:-1] + ', "Proc": 77}'
    reading = read(HTCondorLogReader, f"{ad}\n{twice}\n".encode())
    assert len(starts(reading)) == 1
    assert reading.rejected == {"ambiguous": 1}


def test_an_ad_in_xml_that_says_twice_what_it_tells_is_refused() -> None:
    ad = samples.as_xml(samples.RUN[5:6]).decode()
    twice = ad.replace("</c>", '<a n="Proc"><i>77</i></a></c>', 1)
    assert twice != ad
    reading = read(HTCondorLogReader, (ad + "\n" + twice).encode())
    assert reading.rejected.get("ambiguous") == 1
    assert len(starts(reading)) == 1


def test_a_value_in_json_cannot_break_out_of_its_quotes() -> None:
    reason = 'x", "Proc": 77, "y": "\n...\n001 (077.000.000) 2026-11-21 03:17:00 Job executing'
    held: dict[str, Any] = samples.ad(12, 0, "17:06.200", HoldReason=reason)
    reading = read(HTCondorLogReader, (json.dumps(held) + "\n").encode())
    assert [job.rpartition("#")[2] for _, job in reported(reading)] == ["1.0"]


def test_a_job_ad_in_text_that_names_two_users_is_refused() -> None:
    log = (
        b"000 (001.000.000) 2026-11-21 03:17:00 Job submitted from host: <10.0.0.1:9618>\n...\n"
        b"028 (001.000.000) 2026-11-21 03:17:00 Job ad information event triggered.\n"
        b'Owner = "eve"\nNote = "x"\nOwner = "root"\nTriggerEventTypeNumber = 0\n...\n'
    )
    reading = read(HTCondorLogReader, log)
    assert reading.rejected == {"ambiguous": 1}
    assert [extra.user for _, _, _, extra in reading.events] == [""]


# -- numbers and names without end -------------------------------------------------------------

MANY = b"1" * 5000


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (HTCondorLogReader, b"000 (1.0.0) 2026-11-21 03:17:00 Job submitted from host: <&#"
                            + MANY + b";>\n...\n"),
        (HTCondorLogReader, b"000 (" + MANY + b".0.0) 2026-11-21 03:17:00 Job submitted\n...\n"),
        (HTCondorLogReader, samples.as_json([samples.ad(0, 0, "17:00.000")])
                            .replace(b'"Cluster": 1', b'"Cluster": ' + MANY)),
        (HTCondorLogReader, samples.as_json([samples.ad(0, 0, "17:00.000", EventTime=None)])
                            .replace(b"null", b"[" * 900 + b"]" * 900)),
        (HTCondorLogReader, samples.as_xml([samples.ad(0, 0, "17:00.000")])
                            .replace(b"<i>1</i>", b"<i>&#" + MANY + b";</i>")),
        (JobcompReader, line({"JobId": MANY.decode()})),
        (JobcompReader, line({"ProcCnt": MANY.decode(), "NodeCnt": MANY.decode()})),
        (JobcompReader, line({"Cluster": "c" * 5000})),
        (SacctReader, HEAD + ROW % (MANY, b"a", b"bob")),
        (SacctReader, HEAD + ROW % (b"7_[1-" + MANY + b"]", b"a", b"bob")),
        (PBSAccountingReader, PBS.replace(b"1795231020", MANY) % (b"a", b"b", b"c")),
        (PBSAccountingReader, PBS.replace(b";7.s;", b";" + MANY + b";") % (b"a", b"b", b"c")),
        (PBSAccountingReader, PBS.replace(b"n1/0", b"n1/0-" + MANY) % (b"a", b"b", b"c")),
    ],
)  # fmt: skip
def test_numbers_of_thousands_of_digits_never_raise(kind: type[LogReader], data: bytes) -> None:
    reading = read(kind, data)
    assert all(len(event[2]) < 400 for event in reading.events)


@pytest.mark.parametrize(
    ("kind", "data"),
    [
        (JobcompReader, line({"Name": "x" * (1 << 20)}) + line()),
        (SacctReader, HEAD + ROW % (b"7", b"x" * (1 << 20), b"bob") + ROW % (b"8", b"x", b"bob")),
        (PBSAccountingReader, PBS % (b"a", b"x" * (1 << 20), b"c") + PBS % (b"a", b"b", b"c")),
        (HTCondorLogReader,
         b"005 (1.0.0) 2026-11-21 03:17:00 Job terminated." + b"x" * (1 << 20) + b"\n...\n"
         b"005 (2.0.0) 2026-11-21 03:17:00 Job terminated.\n...\n"),
        (HTCondorLogReader,
         samples.as_json([samples.ad(5, 0, "17:00.000", Note="x" * (1 << 20))])
         + b"\n" + samples.as_json([samples.ad(5, 1, "17:00.000")])),
    ],
)  # fmt: skip
def test_a_record_of_more_than_a_mebibyte_is_refused_and_the_next_is_read(
    kind: type[LogReader], data: bytes
) -> None:
    reading = read(kind, data)
    assert reading.rejected == {"too_long": 1}
    assert len({event[2] for event in reading.events}) == 1
