"""Small hand-made logs: one run as text, JSON and XML, and records to build others from."""

import html
import json
from typing import Any

SCHEDD = "submit.example.org"
SUBMIT_HOST = "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=submit.example.org&sock=schedd_9_43af>"
EXECUTE_HOST = "<10.0.0.7:9618?addrs=10.0.0.7-9618&alias=node7.example.org&sock=startd_8_2ab1>"
FAILED = "Error from slot1_2@node7.example.org: Failed to execute '/no/such/file' (errno=2)"

Ad = dict[str, Any]


def ad(number: int, proc: int, time: str, **more: Any) -> Ad:
    return {
        "Cluster": 1,
        "Proc": proc,
        "Subproc": 0,
        "EventTime": f"2026-11-21T03:{time}Z",
        "EventTypeNumber": number,
        **more,
    }


def about(number: int, proc: int, time: str, **more: Any) -> Ad:
    return ad(28, proc, time, TriggerEventTypeNumber=number, **more)


EXECUTE = {
    "ExecuteHost": EXECUTE_HOST,
    "SlotName": "slot1_2@node7.example.org",
    "ExecuteProps": {"Cpus": 2, "Memory": 256},
}

RUN: list[Ad] = [
    {
        "EventTypeNumber": 8,
        "EventTime": "2026-11-21T03:17:00.418Z",
        "Info": "Global JobLog: sequence=1",
    },
    ad(0, 0, "17:00.418", SubmitHost=SUBMIT_HOST),
    about(0, 0, "17:00.418", Owner="alice", AccountingGroup="physics.alice", RequestCpus=2),
    ad(0, 1, "17:00.419", SubmitHost=SUBMIT_HOST),
    about(0, 1, "17:00.419", Owner="bob"),
    ad(1, 0, "17:02.344", **EXECUTE),
    about(1, 0, "17:02.344", RemoteHost="slot1_2@m1@node7.example.org", Owner="alice"),
    ad(1, 1, "17:02.400", **EXECUTE),
    about(1, 1, "17:02.400", RemoteHost="slot2@node8", Owner="bob"),
    ad(6, 0, "17:03.000", Size=2588),
    ad(10, 0, "17:04.000"),
    ad(11, 0, "17:05.000"),
    ad(4, 1, "17:06.100"),
    about(4, 1, "17:06.100", VacateReasonCode=0),
    ad(6, 0, "17:06.150", Size=2600),
    ad(12, 1, "17:06.200", HoldReason="via condor_hold (by user bob)", HoldReasonCode=1),
    ad(13, 1, "17:08.000", Reason="via condor_release"),
    ad(1, 1, "17:09.000", **EXECUTE),
    ad(4, 1, "17:10.000", Reason=FAILED),
    ad(1, 1, "17:12.000", **EXECUTE),
    ad(4, 1, "17:13.000"),
    about(4, 1, "17:13.000", VacateReasonCode=1005),
    ad(9, 1, "17:15.000", Reason="via condor_rm"),
    ad(5, 0, "17:20.999", ReturnValue=0),
]
"""Ads of the run, in the order of its log."""

WORDS = {
    0: f"Job submitted from host: {SUBMIT_HOST}",
    1: f"Job executing on host: {EXECUTE_HOST}\n\tSlotName: slot1_2@node7.example.org\n"
    '\tCondorScratchDir = "/var/lib/condor/execute/dir_97"\n\tCpus = 2\n\tMemory = 256',
    4: "Job was evicted.\n\t(0) CPU times\n\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Remote Usage"
    "\n\t0  -  Run Bytes Sent By Job",
    5: "Job terminated.\n\t(1) Normal termination (return value 0)\n"
    "\t   Cpus                 :        0        1         1 ",
    6: "Image size of job updated: 2588\n\t2  -  MemoryUsage of job (MB)",
    8: "Global JobLog: sequence=1",
    9: "Job was aborted.\n\tvia condor_rm (by user bob)",
    10: "Job was suspended.\n\tNumber of processes actually suspended: 1",
    11: "Job was unsuspended.",
    12: "Job was held.\n\tvia condor_hold (by user bob)\n\tCode 1 Subcode 0",
    13: "Job was released.\n\tvia condor_release (by user bob)",
    28: "Job ad information event triggered.",
}


def header(
    number: int, job: str = "001.000.000", date: str = "2026-11-21 03:17:00", words: str = ""
) -> str:
    return f"{number:03d} ({job}) {date} {words or WORDS.get(number, 'Something happened.')}"


def record(
    number: int, job: str = "001.000.000", date: str = "2026-11-21 03:17:00", words: str = ""
) -> bytes:
    """Return one record of the text form."""
    return f"{header(number, job, date, words)}\n...\n".encode()


def as_text(ads: list[Ad]) -> bytes:
    return b"".join(_text_of(one) for one in ads)


def _text_of(one: Ad) -> bytes:
    number = one["EventTypeNumber"]
    job = "-01.-01.-01" if number == 8 else f"{one['Cluster']:03d}.{one['Proc']:03d}.000"
    words = WORDS[number]
    if number == 28:
        lines = [f"{name} = {json.dumps(value)}" for name, value in one.items()]
        words = "\n".join([words, *lines])
    if number == 4 and "Reason" in one:
        words += f"\n\t{one['Reason']}"
    return record(number, job, one["EventTime"].replace("T", " "), words)


def as_json(ads: list[Ad]) -> bytes:
    return "".join(json.dumps(one, indent=2) + "\n" for one in ads).encode()


def as_compact_json(ads: list[Ad]) -> bytes:
    return "".join(json.dumps(one, separators=(",", ":")) + "\n" for one in ads).encode()


def as_xml(ads: list[Ad]) -> bytes:
    return "".join(_xml_of(one, "") + "\n" for one in ads).encode()


def as_xml_document(ads: list[Ad]) -> bytes:
    beginning = b'<?xml version="1.0"?>\n<!DOCTYPE classads SYSTEM "classads.dtd">\n<classads>\n'
    return beginning + as_xml(ads) + b"</classads>\n"


def _xml_of(one: Ad, indent: str) -> str:
    lines = []
    for name, value in one.items():
        if isinstance(value, dict):
            body = _xml_of(value, indent + "    ")
        elif isinstance(value, str):
            body = f"<s>{html.escape(value, quote=False)}</s>"
        else:
            body = f"<i>{value}</i>"
        lines.append(f'{indent}    <a n="{name}">{body}</a>')
    return "\n".join(["<c>", *lines, f"{indent}</c>"])
