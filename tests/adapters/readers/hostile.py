"""Records that could cost too much to read: one unit repeated in one place of a record."""

from collections.abc import Iterator
from typing import Final

from outrider.api import LogReader
from outrider_adapters.readers.htcondor import HTCondorLogReader
from outrider_adapters.readers.pbs import PBSAccountingReader
from outrider_adapters.readers.slurm import JobcompReader, SacctReader
from outrider_adapters.readers.swf import SwfReader

HOLE: Final = b"\0"
"""Mark of a place: each in turn gets the repeated unit, the others are left out."""

UNITS: Final = (
    # runs of one sign
    b" ", b"\t", b"0", b"1", b"9", b"a", b"=", b";", b",", b"|", b"_", b"-", b".", b":", b"/", b"+",
    b"*", b'"', b"'", b"\\", b"(", b")", b"[", b"]", b"{", b"}", b"<", b">", b"&", b"\xff",
    # pairs, quotes and escapes that never end
    b"a=", b'a="', b"a='", b'="', b"=' ", b'=" ', b"a=b ", b" a", b'\\"', b'"a', b"&#1;", b"&#",
    b"&lt;", b"&lt;a&gt;", b"\xe2\x80\xa8",
    # numbers, dates and ranges
    b"1 ", b"1.", b"-1", b"1,", b"1-", b"1:", b"1_", b"[1", b"1]", b"(1) ", b"(1", b"1/", b".1",
    b"n[1-999999999],", b"n[0-9][0-9]", b"n1/0-999999+", b"n1/0*999999+", b"(n1:ncpus=8)+",
    b"999999:ppn=999999+", b"slot1_1", b"2026-11-21 03:17:00 ",
    # markup
    b"<c>", b"</c>", b'<a n="', b'<a n="x"><s>', b'<a n="x"> ', b"<![", b"<?", b"<[", b"<a:1?",
    b"{}",
    b'{"a":', b"[[",
    # words of the formats
    b"host: ", b"submitted from host:", b"submitted from host: a", b'SubmitHost": "', b"&lt;host: ",
    b"submitted from host: &lt;", b'GlobalJobId = "', b"000 (", b"000 (1.1.1) ",
    b"001 (1.1.1) 2026-11-21 03:17:00 ", b"UserId=", b"(1) GroupId=", b" GroupId=a(1) ", b" Name=",
    b"(1) Name=", b" JobState=A", b" JobState=A Partition=p", b" ReservationName=", b" Tres=",
    b" JobState=A Partition= TimeLimit= StartTime= EndTime= NodeList= NodeCnt=1",
    b"JobId=1 UserId=a(1) ", b" ProcCnt=1",
)  # fmt: skip
LINES: Final = (
    b"\n", b"\r\n", b"\r", b"\n ", b"\n\t", b"\n...", b"\n...\n", b"\n000 (", b"\n000 (1.1.1)",
    b"\n028 (1.1.1) 11/21 03:17:00\n...", b"\n{", b"\n<c>", b"\n;", b"\n Cpus = ", b"\nOwner = ",
    b"\nJobId=1 UserId=a(1) ", b"\n1|", b"\n11/21/2026 03:17:00;D;1;", b"\n1 2 3",
)  # fmt: skip
"""Units with line ends, so that one record becomes many, or many lines."""

_PLACES: Final[dict[type[LogReader], tuple[bytes, ...]]] = {
    JobcompReader: (
        (
            b"JobId=7\0 UserId=\0(1) GroupId=\0(2) Name=\0 JobState=COMPLETED\0 Partition=\0 "
            b"TimeLimit=\0 StartTime=2026-11-21T03:01:00\0 EndTime=2026-11-21T03:11:00\0 "
            b"NodeList=\0 "
            b"NodeCnt=2 ProcCnt=\0 WorkDir=\0 ReservationName=\0 Tres=cpu=\0 Account=\0 QOS= "
            b"Cluster=\0 SubmitTime=\0 ArrayJobId=\0 \0\n"
        ),
    ),
    SacctReader: (
        (
            b"JobID|User|Submit|Start|End|State|Timelimit|NodeList|AllocCPUS|Elapsed|JobName\0\n"
            b"7\0|\0|\0|\0|2026-11-21T03:11:00\0|COMPLETED\0|\0|\0|\0|\0|\0\n"
        ),
        b"JobID|State|Start|End\n7_[\0|COMPLETED|\0|2026-11-21T03:11:00\n",
    ),
    PBSAccountingReader: (
        (
            b"11/21/2026 03:17:00\0;E\0;7\0;user=u\0 \0 group=\0 ctime=1\0 start=2\0 end=3\0 "
            b'exec_host=\0 Resource_List.walltime=\0 account="\0 Exit_status=\0\n'
        ),
        b"11/21/2026 03:17:00;Q;7;ctime=1 Resource_List.nodes=\0 Resource_List.select=\0\n",
        b'11/21/2026 03:17:00;S;7;\0ctime=\0 "\0 Resource_List.select=\0\n',
    ),
    SwfReader: (b"; UnixStartTime: 1\0\n1 \0 2 3 4 -1\0 -1 4 5 -1 1 1 1\0 1 1 1 -1 -1 \0\n",),
    HTCondorLogReader: (
        b"000 (1\0.000.000) 2026-11-21 03:17:00\0 Job submitted from host: \0<\0>\0\n\0...\n",
        (
            b"001 (1.000.000) 2026-11-21\0 03:17:00.1\0 Job executing on host: \0<\0>\0\n"
            b"\tSlotName: slot\0\n\0\tCpus = 2\0\n\0...\n"
        ),
        (
            b"000 (1.000.000) 11/21 03:17:00 Job submitted from host: <a>\n...\n"
            b'028 (1.000.000) 11/21 03:17:00 Job ad\n\0Owner = "\0\nAccountingGroup = "\0"\n'
            b"RequestCpus = 1\0\n\0TriggerEventTypeNumber = 0\0\n...\n"
        ),
        (
            b'{"Cluster": 1\0, "Proc": 0, "Subproc": 0, "EventTypeNumber": 0, '
            b'"SubmitHost": "<\0>", "EventTime": "2026-11-21T03:17:00\0", "\0": "\0"}\n\0\n'
        ),
        (
            b'{"Cluster": 1, "Proc": 0, "EventTime": "2026-11-21T03:17:00", "EventTypeNumber": 1, '
            b'"ExecuteHost": "\0", "SlotName": "\0", "a": \0}\n\0\n'
        ),
        (
            b'<c>\n<a n="Cluster"><i>1\0</i></a><a n="Proc"><i>0</i></a><a n="EventTime">'
            b'<s>2026-11-21T03:17:00\0</s></a><a n="EventTypeNumber"><i>0</i></a>\0'
            b'<a n="SubmitHost">'
            b"<s>\0&lt;\0&gt;</s></a>\n\0</c>\n\0\n"
        ),
    ),
}
READERS: Final = tuple(_PLACES)


def shapes(reader: type[LogReader]) -> Iterator[tuple[str, bytes, bytes, bytes]]:
    """Yield every unit in every place of the reader's records.

    Yields:
        (a name, what stands before the repeated unit, the unit, what stands behind it).
    """
    for template in _PLACES[reader]:
        holes = template.split(HOLE)
        for place in range(len(holes) - 1):
            front, back = b"".join(holes[: place + 1]), b"".join(holes[place + 1 :])
            for number, unit in enumerate(UNITS):
                yield f"{front[-24:]!r} + {unit!r} * n", front, unit, back
                if (number + place) % 3:
                    continue
                yield f"{front[-24:]!r} + {unit!r} * n + line end", front, unit, b"\n"
            for unit in LINES if place == len(holes) // 2 else ():
                yield f"{front[-24:]!r} + {unit!r} * n", front, unit, back


def repeated(shape: tuple[str, bytes, bytes, bytes], size: int) -> bytes:
    """Return the record of a shape with about `size` bytes of its unit."""
    _, front, unit, back = shape
    return front + unit * (size // len(unit)) + back
