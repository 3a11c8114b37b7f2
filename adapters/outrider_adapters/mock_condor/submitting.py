"""Job ads from a submit description, as condor_submit makes them."""

import re
from collections.abc import Callable, Mapping
from typing import Final

from outrider.api import nearest
from outrider_adapters.htcondor.pool_calls import (
    ClassAd,
    ClassAdException,
    ExprTree,
    HTCondorException,
    JobStatus,
)
from outrider_adapters.mock_condor.collector import schedd_name

_SUBMITTED_ON_HOLD: Final = 15  # HoldReasonCode
_VANILLA: Final = 5
_UNITS_MB: Final = {"k": 1 / 1024, "m": 1.0, "g": 1024.0, "t": 1024.0**2}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kmgt])b?", re.IGNORECASE)
_MACRO = re.compile(r"\$\((\w+)\)")


def _text(value: str) -> str:
    return value


def _megabytes(value: str) -> ExprTree:
    size = _SIZE.fullmatch(value.strip())
    return ExprTree(str(int(float(size[1]) * _UNITS_MB[size[2].lower()])) if size else value)


def _kilobytes(value: str) -> ExprTree:
    size = _SIZE.fullmatch(value.strip())
    return ExprTree(str(int(float(size[1]) * _UNITS_MB[size[2].lower()] * 1024)) if size else value)


_COMMANDS: Final[Mapping[str, tuple[str, Callable[[str], object]]]] = {
    "executable": ("Cmd", _text),
    "arguments": ("Args", _text),
    "request_cpus": ("RequestCpus", ExprTree),
    "request_memory": ("RequestMemory", _megabytes),
    "request_disk": ("RequestDisk", _kilobytes),
    "requirements": ("Requirements", ExprTree),
    "rank": ("Rank", ExprTree),
    "priority": ("JobPrio", ExprTree),
    "accounting_group": ("AcctGroup", _text),
    "accounting_group_user": ("AcctGroupUser", _text),
    "initialdir": ("Iwd", _text),
    "log": ("UserLog", _text),
    "input": ("In", _text),
    "output": ("Out", _text),
    "error": ("Err", _text),
}
_WITHOUT_EFFECT: Final = frozenset(
    {"universe", "hold", "should_transfer_files", "notification", "when_to_transfer_output"}
)
"""Commands that are handled elsewhere, or have no effect because nothing really runs."""

_DEFAULTS: Final = {
    "Args": "",
    "RequestCpus": 1,
    "RequestMemory": 128,
    "RequestDisk": 1024,
    "Rank": 0.0,
    "JobPrio": 0,
    "JobUniverse": _VANILLA,
    "MyType": "Job",
    "TargetType": "Machine",
    "CurrentHosts": 0,
    "MinHosts": 1,
    "MaxHosts": 1,
    "NumJobStarts": 0,
    "NumRestarts": 0,
    "RemoteWallClockTime": 0.0,
    "CumulativeSlotTime": 0.0,
    "CumulativeSuspensionTime": 0,
    "TotalSuspensions": 0,
    "ExitBySignal": False,
    "ExitStatus": 0,
    "LeaveJobInQueue": False,
}
_ALWAYS_REQUIRED: Final = {
    "Arch": '(TARGET.Arch == "X86_64")',
    "OpSys": '(TARGET.OpSys == "LINUX")',
    "Disk": "(TARGET.Disk >= RequestDisk)",
    "Memory": "(TARGET.Memory >= RequestMemory)",
    "Cpus": "(TARGET.Cpus >= RequestCpus)",
    "HasFileTransfer": "(TARGET.HasFileTransfer)",
}
"""Clauses that condor_submit adds to requirements which do not refer to the attribute."""


def job_ad(
    description: Mapping[str, str], user: str, domain: str, cluster: int, proc: int, now_s: float
) -> ClassAd:
    """Return the ad of one job.

    Raises:
        HTCondorException: an unsupported command, a universe other than vanilla, or a value that
            does not parse; nothing is ignored silently.
    """
    ad = ClassAd(_DEFAULTS)
    ad.update(
        {
            "ClusterId": cluster,
            "ProcId": proc,
            "GlobalJobId": f"{schedd_name(domain)}#{cluster}.{proc}#{int(now_s)}",
            "Owner": user,
            "User": f"{user}@{domain}",
            "QDate": int(now_s),
            "EnteredCurrentStatus": int(now_s),
            "JobStatus": int(JobStatus.IDLE),
        }
    )
    for command, raw in description.items():
        _apply(ad, command, _expanded(raw, cluster, proc))
    if "Cmd" not in ad:
        raise HTCondorException("submit: no executable, for example: executable = /bin/sleep")
    if description.get("hold", "false").strip().lower() == "true":
        ad["JobStatus"] = int(JobStatus.HELD)
        ad["HoldReasonCode"], ad["HoldReasonSubCode"] = _SUBMITTED_ON_HOLD, 0
        ad["HoldReason"] = f"submitted on hold at user's request (by user {user})"
    ad["Requirements"] = ExprTree(_requirements(ad))
    if "AcctGroup" in ad:
        ad["AcctGroupUser"] = ad.get("AcctGroupUser", user)
        ad["AccountingGroup"] = f"{ad['AcctGroup']}.{ad['AcctGroupUser']}"
    return ad


def submitter_of(ad: ClassAd, domain: str) -> str:
    """Return the submitter to charge for a job: its accounting group, else its owner."""
    return f"{ad.get('AccountingGroup') or ad['Owner']}@{domain}"


def sleeping_s(ad: ClassAd) -> float:
    """Return the run time of a ``sleep SECONDS`` job.

    Raises:
        HTCondorException: another command, or no number.
    """
    try:
        if str(ad["Cmd"]).rpartition("/")[2] == "sleep":
            return float(ad["Args"])
    except ValueError:
        pass
    raise HTCondorException(
        f'submit: the mock pool runs only "sleep SECONDS", not "{ad["Cmd"]} {ad["Args"]}": '
        "jobs with another run time are submitted by MockPool.submit"
    )


def _apply(ad: ClassAd, command: str, value: str) -> None:
    name = command.strip()
    try:
        if name.startswith("+") or name.lower().startswith("my."):
            ad[name.removeprefix("+") if name[0] == "+" else name[3:]] = ExprTree(value)
        elif name.lower() in _COMMANDS:
            attribute, convert = _COMMANDS[name.lower()]
            ad[attribute] = convert(value)
        elif name.lower() not in _WITHOUT_EFFECT:
            known = nearest(name.lower(), (*_COMMANDS, *_WITHOUT_EFFECT))
            raise HTCondorException(f'submit: the mock pool does not know "{name}"; {known}')
        elif name.lower() == "universe" and value.strip().lower() != "vanilla":
            raise HTCondorException(f'submit: universe "{value}"; the mock pool has only vanilla')
    except ClassAdException as error:
        raise HTCondorException(f'submit: {name} = "{value}" is no ClassAd expression') from error


def _expanded(raw: str, cluster: int, proc: int) -> str:
    macros = {"process": proc, "procid": proc, "cluster": cluster, "clusterid": cluster}

    def value(macro: re.Match[str]) -> str:
        found = macros.get(macro[1].lower())
        if found is None:
            raise HTCondorException(
                f"submit: the mock pool does not expand {macro[0]}, only $(Cluster) and $(Process)"
            )
        return str(found)

    return _MACRO.sub(value, raw)


def _requirements(ad: ClassAd) -> str:
    parts = []
    named: set[str] = set()
    if "Requirements" in ad:
        own = ad.lookup("Requirements")
        parts.append(f"({own!r})")
        named = {name.rpartition(".")[2].lower() for name in ad.externalRefs(own)}
    parts += [text for name, text in _ALWAYS_REQUIRED.items() if name.lower() not in named]
    return " && ".join(parts)
