"""Reading never raises for any content of Slurm's records, and the sums are right."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from outrider.api import LogReader, ReaderOptions
from outrider_adapters.readers.slurm import JobcompReader, SacctReader

SACCT = (
    b"JobID|User|Submit|Eligible|Start|End|State|Timelimit|NodeList|JobName\n"
    b"7|alice|2026-11-21T03:00:00|Unknown|2026-11-21T03:01:00|2026-11-21T03:11:00"
    b"|NODE_FAIL|1-06:00:00|node[03-04]|a|b\n"
    b"7.batch||2026-11-21T03:00:00|||2026-11-21T03:11:00|FAILED||node03|batch\n"
    b"8_[1-4]|bob|2026-11-21T03:00:00|None|None|Unknown|PENDING||None assigned|c\n"
)
JOBCOMP = (
    b"JobId=7 UserId=alice(1) GroupId=users(2) Name=a b JobState=PREEMPTED Partition=batch "
    b"TimeLimit=60 StartTime=2026-11-21T03:01:00 EndTime=2026-11-21T03:11:00 NodeList=n[1-2] "
    b"NodeCnt=2 ProcCnt=4 WorkDir=/a b ReservationName= Tres=cpu=4,node=2 Account=physics QOS= "
    b"WcKey= Cluster=c SubmitTime=2026-11-21T03:00:00 EligibleTime=unknown ArrayJobId=6 "
    b"ArrayTaskId=1 DerivedExitCode=0:0 ExitCode=0:0 \n"
)
FORMS: dict[type[LogReader], bytes] = {SacctReader: SACCT, JobcompReader: JOBCOMP}


def check_reading(kind: type[LogReader], data: bytes, cut: int) -> None:
    kind.recognises(data)
    reader = kind(ReaderOptions(timezone="Europe/Berlin"))
    first = reader.read(data[:cut])
    resumed = kind(ReaderOptions(timezone="Europe/Berlin"))
    resumed.restore(reader.save())
    second = resumed.read(data[first.consumed :], final=True)
    for reading, fed in ((first, cut), (second, len(data) - first.consumed)):
        assert 0 <= reading.consumed <= fed
        aside = sum(reading.ignored.values()) + sum(reading.rejected.values())
        assert aside <= reading.records <= aside + len(reading.events)
        assert all(0 < event[0] < 3e11 for event in reading.events)


@pytest.mark.parametrize("kind", FORMS)
@given(data=st.binary(max_size=400), cut=st.integers(0, 400))
def test_arbitrary_bytes_after_a_record_never_raise(
    kind: type[LogReader], data: bytes, cut: int
) -> None:
    data = FORMS[kind] + data
    check_reading(kind, data, min(cut, len(data)))


@pytest.mark.parametrize("kind", FORMS)
@given(
    changes=st.lists(
        st.tuples(st.floats(0, 1), st.integers(0, 40), st.binary(max_size=20)), max_size=6
    ),
    cut=st.integers(0, 1000),
)
def test_damaged_records_never_raise(
    kind: type[LogReader], changes: list[tuple[float, int, bytes]], cut: int
) -> None:
    data = FORMS[kind] * 3
    for where, size, put in changes:
        at = int(where * len(data))
        data = data[:at] + put + data[at + size :]
    check_reading(kind, data, min(cut, len(data)))


@given(
    stamp=st.text(alphabet="0123456789-:T+Z. ", min_size=1, max_size=30),
    limit=st.text(alphabet="0123456789-:.", max_size=20),
    nodes=st.text(alphabet="n0[]-, ", max_size=20),
)
def test_what_looks_almost_like_a_time_or_a_node_list_never_raises(
    stamp: str, limit: str, nodes: str
) -> None:
    header = b"JobID|State|Submit|Start|End|Timelimit|NodeList\n"
    row = f"7|TIMEOUT|{stamp}|2026-11-21T03:01:00|{stamp}|{limit}|{nodes}\n"
    check_reading(SacctReader, header + row.encode(), 20)
