"""Reader of the log of ``JobCompType=jobcomp/filetxt``: ``Key=value`` pairs, one job per line."""

import re
from typing import ClassVar, Final

from outrider.api import NamedEvent
from outrider_adapters.readers.slurm import record_events
from outrider_adapters.readers.slurm.lines import LineReader
from outrider_adapters.readers.slurm.record_events import Record, UnreadableRecordError

_FRONT = re.compile(r"JobId=(\d{1,10}) UserId=", re.ASCII)
_USER_END = re.compile(r"\(\d{1,10}\) (?=GroupId=|Name=)", re.ASCII)
_GROUP_END = re.compile(r"\(\d{1,10}\) (?=Name=)", re.ASCII)
_RUN = re.compile(
    r" JobState=(?P<state>[A-Z_]+) Partition=\S* TimeLimit=(?P<limit>\S*)"
    r" StartTime=(?P<start>\S*) EndTime=(?P<end>\S*) NodeList=(?P<nodes>\S*) NodeCnt=\d{1,9}"
    r"(?: ProcCnt=(?P<cpus>\d{1,9}))?(?= |\Z)",
    re.ASCII,
)
"""Text that follows a job's name. A name may hold blanks and even pairs, so the whole line is
searched: if there are two matches, a user wrote one of them.
"""
_BEGINNING = re.compile(rb"JobId=\d{1,10} UserId=")
_AFTER_FOLDER: Final = " ReservationName="
_CPUS_ASKED = re.compile(r"cpu=(\d{1,9})", re.ASCII)
AMBIGUOUS: Final = "ambiguous"
"""Reason of a record with several readings, because a user wrote pairs into a name."""


class JobcompReader(LineReader):
    """Reader of the records that Slurm's jobcomp/filetxt plugin appends when a job ends.

    Jobs go by ``CLUSTER:ID``, and tasks of arrays (``123_4``) and components of heterogeneous jobs
    (``123+0``) by sacct's spelling. If a record does not contain the cluster, `LineReader.name_of`
    selects one. Records of Slurm before 15.08 do not contain submissions.

    Raises:
        ConfigurationError: the time zone is unknown.
    """

    name: ClassVar[str] = "slurm-jobcomp"
    description: ClassVar[str] = "Slurm job completion log (jobcomp/filetxt)"
    api_version = 1

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Return whether a file begins with a job completion record."""
        first = head.lstrip().partition(b"\n")[0]
        return _BEGINNING.match(first) is not None and b" JobState=" in first

    def is_cut(self, line: str) -> bool:
        """Return whether a line begins a record without ending it; see `LineReader.is_cut`."""
        return _FRONT.match(line) is not None and _RUN.search(line) is None

    def is_rest(self, line: str) -> bool:
        """Return whether a line ends a record without beginning it; see `LineReader.is_rest`."""
        return _FRONT.match(line) is None and _RUN.search(line) is not None

    def read_line(self, line: str) -> list[NamedEvent]:
        """Return the events of a record; see `LineReader.read_line`."""
        number, user, group, run = _split(line)
        more = _pairs_after_folder(line[run.end() :])
        asked = _CPUS_ASKED.match(more.get("Tres", ""))
        state = run["state"]
        return self.lives.events_of(
            Record(
                job=self.name_of(_job_id(number, more), _cluster(more.get("Cluster"))),
                state=record_events.REQUEUED if state == "PENDING" else state,
                submit=more.get("SubmitTime", ""),
                eligible=more.get("EligibleTime", ""),
                start=run["start"],
                end=run["end"],
                elapsed="",
                allocated=run["cpus"] or "",
                requested=asked[1] if asked else "",
                user=_word(user),
                account=_word(more.get("Account")),
                group=_word(group),
                limit=run["limit"],
                nodes=run["nodes"],
                restarts="",
            )
        )


def _split(line: str) -> tuple[str, str, str, re.Match[str]]:
    """Return a record's number, user and group, and the match of the text after its name.

    Each pattern takes one pass over the line, regardless of its content.
    """
    front = _FRONT.match(line)
    user_end = _USER_END.search(line, front.end()) if front else None
    if front is None or user_end is None:
        raise UnreadableRecordError("garbage")
    group, name_at = "", user_end.end()
    if line.startswith("GroupId=", name_at):
        group_end = _GROUP_END.search(line, name_at)
        if group_end is None:
            raise UnreadableRecordError("garbage")
        group, name_at = line[name_at + len("GroupId=") : group_end.start()], group_end.end()
    runs = _RUN.finditer(line, name_at + len("Name="))
    run = next(runs, None)
    if run is None:
        raise UnreadableRecordError("garbage")
    if next(runs, None) is not None:
        raise UnreadableRecordError(AMBIGUOUS)
    return front[1], line[front.end() : user_end.start()], group, run


def _pairs_after_folder(rest: str) -> dict[str, str]:
    """Return the pairs after the folder, which may hold blanks and pairs; later values may not."""
    _, *behind = rest.split(_AFTER_FOLDER)
    if len(behind) > 1:
        raise UnreadableRecordError(AMBIGUOUS)
    pairs: dict[str, str] = {}
    for word in behind[0].split(" ") if behind else ():
        key, equals, value = word.partition("=")
        if equals and pairs.setdefault(key, value) != value:
            raise UnreadableRecordError(AMBIGUOUS)
    return pairs


def _word(text: str | None) -> str:
    """Return a name, empty if the controller had none."""
    return "" if text is None or text == "(null)" else text


def _cluster(text: str | None) -> str:
    """Return the cluster's name; "unknown" is written by a controller without accounting."""
    return "" if text == "unknown" else _word(text)


def _job_id(number: str, more: dict[str, str]) -> str:
    if "ArrayTaskId" in more:
        return f"{more.get('ArrayJobId', number)}_{more['ArrayTaskId']}"
    if "HetJobId" in more:
        return f"{more['HetJobId']}+{more.get('HetJobOffset', '0')}"
    return number
