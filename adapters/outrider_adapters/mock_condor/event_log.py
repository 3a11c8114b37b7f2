"""HTCondor's global event log (``EVENT_LOG``) in text form.

The format follows a log of HTCondor 23.9 with ``EVENT_LOG_FORMAT_OPTIONS = UTC, ISO_DATE,
SUB_SECOND``: each job event is followed by a 028 event with attributes of the job's ad.
"""

import datetime as dt
from collections.abc import Callable
from typing import Final, TextIO

from outrider_adapters.htcondor.pool_calls import ClassAd

_JOB_ATTRIBUTES: Final = (
    "AcctGroup",
    "AccountingGroup",
    "CumulativeSlotTime",
    "GlobalJobId",
    "JobPrio",
    "JobRunCount",
    "LastRemoteHost",
    "LastVacateTime",
    "NumJobStarts",
    "NumShadowStarts",
    "Owner",
    "RemoteHost",
    "RemoteWallClockTime",
    "RequestCpus",
    "VacateReason",
    "VacateReasonCode",
)
"""Value of ``EVENT_LOG_JOB_AD_INFORMATION_ATTRS``."""

_NO_USAGE: Final = "Usr 0 00:00:00, Sys 0 00:00:00"


class EventLog:
    """Writer of records to an open text file.

    Args:
        file: the log; None: records are dropped.
        repeats: returns whether the next record is written twice (a fault).
    """

    def __init__(self, file: TextIO | None, repeats: Callable[[], bool]) -> None:
        self._file = file
        self._repeats = repeats

    def flush(self) -> None:
        """Flush the file, so that readers see all records."""
        if self._file is not None:
            self._file.flush()

    def submitted(self, time_s: float, job: ClassAd) -> None:
        """Write event 000 (submitted)."""
        self._write(0, "SUBMIT", time_s, job, "Job submitted from host: <127.0.0.1:0?sock=schedd>")

    def executing(self, time_s: float, job: ClassAd, slot: ClassAd) -> None:
        """Write event 001 (executing)."""
        self._write(
            1, "EXECUTE", time_s, job,
            f"Job executing on host: {slot['MyAddress']}",
            f"SlotName: {slot['Name']}",
            f"Cpus = {slot['Cpus']}",
            f"Memory = {slot['Memory']}",
        )  # fmt: skip

    def evicted(self, time_s: float, job: ClassAd) -> None:
        """Write event 004 (evicted). It gives no cause, as with a real startd."""
        self._write(
            4, "JOB_EVICTED", time_s, job, "Job was evicted.", "(0) CPU times",
            *_usage("Run Remote", "Run Local"), *_bytes("Run"),
        )  # fmt: skip

    def terminated(self, time_s: float, job: ClassAd) -> None:
        """Write event 005 of a job that ended on its own with exit code 0."""
        self._write(
            5, "JOB_TERMINATED", time_s, job, "Job terminated.",
            "(1) Normal termination (return value 0)",
            *_usage("Run Remote", "Run Local", "Total Remote", "Total Local"),
            *_bytes("Run"), *_bytes("Total"),
        )  # fmt: skip

    def aborted(self, time_s: float, job: ClassAd) -> None:
        """Write event 009 (removed)."""
        self._write(
            9, "JOB_ABORTED", time_s, job, "Job was aborted.", str(job.get("RemoveReason", ""))
        )

    def suspended(self, time_s: float, job: ClassAd) -> None:
        """Write event 010 (suspended)."""
        self._write(
            10, "JOB_SUSPENDED", time_s, job, "Job was suspended.",
            "Number of processes actually suspended: 1",
        )  # fmt: skip

    def unsuspended(self, time_s: float, job: ClassAd) -> None:
        """Write event 011 (resumed)."""
        self._write(11, "JOB_UNSUSPENDED", time_s, job, "Job was unsuspended.")

    def held(self, time_s: float, job: ClassAd) -> None:
        """Write event 012 (held)."""
        codes = f"Code {job['HoldReasonCode']} Subcode {job['HoldReasonSubCode']}"
        self._write(
            12, "JOB_HELD", time_s, job, "Job was held.", str(job.get("HoldReason", "")), codes
        )

    def released(self, time_s: float, job: ClassAd) -> None:
        """Write event 013 (released)."""
        self._write(
            13, "JOB_RELEASED", time_s, job, "Job was released.", str(job.get("ReleaseReason", ""))
        )

    def _write(self, number: int, name: str, time_s: float, job: ClassAd, *lines: str) -> None:
        if self._file is None:
            return
        stamp = dt.datetime.fromtimestamp(time_s, dt.UTC)
        second = f"{stamp:%Y-%m-%d %H:%M:%S}.{stamp.microsecond // 1000:03d}Z"
        ids = f"({job['ClusterId']:03d}.{job['ProcId']:03d}.000) {second}"
        body = "\n\t".join(lines)
        record = (
            f"{number:03d} {ids} {body}\n...\n"
            f"028 {ids} Job ad information event triggered.\n"
            f"{_information(number, name, second, job)}...\n"
        )
        self._file.write(record * 2 if self._repeats() else record)


def _information(number: int, name: str, second: str, job: ClassAd) -> str:
    facts = {
        "Cluster": str(job["ClusterId"]),
        "EventTime": f'"{second.replace(" ", "T")}"',
        "EventTypeNumber": "28",
        "Proc": str(job["ProcId"]),
        "Subproc": "0",
        "TriggerEventTypeName": f'"ULOG_{name}"',
        "TriggerEventTypeNumber": str(number),
    }
    for attribute in _JOB_ATTRIBUTES:
        if attribute in job:
            facts[attribute] = repr(job.lookup(attribute))
    return "".join(f"{key} = {facts[key]}\n" for key in sorted(facts))


def _usage(*kinds: str) -> list[str]:
    return [f"\t{_NO_USAGE}  -  {kind} Usage" for kind in kinds]


def _bytes(kind: str) -> list[str]:
    return [f"0  -  {kind} Bytes {way} By Job" for way in ("Sent", "Received")]
