"""The reader of the log of ``JobCompType=jobcomp/filetxt``: ``Key=value`` pairs, a job a line."""

import re
from typing import ClassVar, Final

from outrider.api import NamedEvent
from outrider_adapters.readers.slurm import states
from outrider_adapters.readers.slurm.lines import LineReader
from outrider_adapters.readers.slurm.record_events import Record, UnreadableRecordError

_HEAD = re.compile(
    r"JobId=(?P<id>\d{1,10}) (?>UserId=(?P<user>.*?)\(\d+\) (?=GroupId=|Name=))"
    r"(?>GroupId=(?P<group>.*?)\(\d+\) (?=Name=))?Name=.*? JobState=(?P<state>[A-Z_]+)"
    r" Partition=\S* TimeLimit=(?P<limit>\S*) StartTime=(?P<start>\S*) EndTime=(?P<end>\S*)"
    r" NodeList=(?P<nodes>\S*) NodeCnt=\d+(?: ProcCnt=(?P<cpus>\d+))?(?: (?P<rest>.*))?",
    re.ASCII,
)
"""A name may hold blanks and even pairs: it ends where all that must follow it does."""
_PAIR = re.compile(r"(\w+)=(\S*)", re.ASCII)
_BEGINNING = re.compile(rb"JobId=\d+ UserId=[^\n]*?\(\d+\) [^\n]* JobState=")
_AFTER_FOLDER: Final = " ReservationName="
_CPUS_ASKED = re.compile(r"cpu=(\d{1,9})", re.ASCII)


class JobcompReader(LineReader):
    """Reads what the jobcomp/filetxt plugin of the Slurm controller appends when a job ends.

    Jobs go by ``CLUSTER:ID``, and tasks of arrays (``123_4``) and components of heterogeneous jobs
    (``123+0``) by sacct's spelling. Where a record does not tell the cluster, `LineReader.name_of`
    says what stands for it. Records of Slurm before 15.08 do not tell of submissions.

    Raises:
        ConfigurationError: the time zone is not known.
    """

    name: ClassVar[str] = "slurm-jobcomp"
    description: ClassVar[str] = "Slurm job completion log (jobcomp/filetxt)"
    api_version = 1

    @classmethod
    def recognises(cls, head: bytes) -> bool:
        """Whether a file begins with a job completion record."""
        return _BEGINNING.match(head.lstrip()) is not None

    def read_line(self, line: str) -> list[NamedEvent]:
        """The events of a record; see `LineReader.read_line`."""
        head = _HEAD.fullmatch(line)
        if head is None:
            raise UnreadableRecordError("garbage")
        # folders may hold blanks and pairs, too; no value behind them holds a blank
        _, _, behind = (head["rest"] or "").rpartition(_AFTER_FOLDER)
        more = dict(_PAIR.findall(behind))
        asked = _CPUS_ASKED.match(more.get("Tres", ""))
        state = head["state"]
        return self.lives.tell(
            Record(
                job=self.name_of(_job_id(head["id"], more), _cluster(more.get("Cluster"))),
                state=states.REQUEUED if state == "PENDING" else state,
                submit=more.get("SubmitTime", ""),
                eligible=more.get("EligibleTime", ""),
                start=head["start"],
                end=head["end"],
                elapsed="",
                allocated=head["cpus"] or "",
                requested=asked[1] if asked else "",
                user=_word(head["user"]),
                account=_word(more.get("Account")),
                group=_word(head["group"]),
                limit=head["limit"],
                nodes=head["nodes"],
                restarts="",
            )
        )


def _word(text: str | None) -> str:
    """A name, empty where the controller had none."""
    return "" if text is None or text == "(null)" else text


def _cluster(text: str | None) -> str:
    """The cluster's name; a controller without accounting writes that it knows none."""
    return "" if text == "unknown" else _word(text)


def _job_id(number: str, more: dict[str, str]) -> str:
    if "ArrayTaskId" in more:
        return f"{more.get('ArrayJobId', number)}_{more['ArrayTaskId']}"
    if "HetJobId" in more:
        return f"{more['HetJobId']}+{more.get('HetJobOffset', '0')}"
    return number
