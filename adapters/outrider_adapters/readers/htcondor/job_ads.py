"""What a job's id and ad say: its short id, its user, its group, what it requests."""

import re
from collections.abc import Mapping
from typing import Final

from outrider.api import JobSpec, Resources
from outrider_adapters.readers.shared import cached_if_short

SPEC_ATTRIBUTES: Final = (
    "Owner",
    "User",
    "AcctGroup",
    "AccountingGroup",
    "x509UserProxyVOName",
    "RequestCpus",
    "RequestMemory",
    "RequestGPUs",
)
"""Attributes of a job ad that `job_spec` reads."""


def job_id(cluster: str, proc: str, subproc: str) -> str:
    """A job id in HTCondor's short spelling, unique within its schedd only.

    >>> job_id("001", "000", "000")
    '1.0'
    """
    name = f"{_plain(cluster)}.{_plain(proc)}"
    return f"{name}.{_plain(subproc)}" if subproc.strip("0") else name


def job_spec(facts: Mapping[str, str]) -> JobSpec:
    """The specification of a job by the attributes of its ad.

    The VO is ``AcctGroup``, else ``AccountingGroup`` without its user, else the VO of the
    user's proxy. A ``User`` is cut at its domain.

    >>> spec = job_spec({"Owner": "alice", "AccountingGroup": "physics.alice", "RequestCpus": "2"})
    >>> spec.user, spec.vo, spec.cpus
    ('alice', 'physics', 2)
    """
    user = facts.get("Owner") or facts.get("User", "").partition("@")[0]
    group = facts.get("AccountingGroup", "")
    vo = facts.get("AcctGroup") or (group.removesuffix(f".{user}") if user else group)
    vo = vo or facts.get("x509UserProxyVOName") or "all"
    requested = (facts.get(name, "") for name in ("RequestCpus", "RequestMemory", "RequestGPUs"))
    return _shared_spec(user, vo, *requested)


@cached_if_short(entries=4096)
def _shared_spec(user: str, vo: str, cpus: str, memory: str, gpus: str) -> JobSpec:
    """One record for all jobs that ask for the same. HTCondor's megabytes of memory are MiB."""
    memory_mib, gpus_n = _amount(memory), _amount(gpus)
    asks = memory_mib or gpus_n
    resources = Resources(memory_mib=memory_mib, gpus=gpus_n) if asks else None
    return JobSpec(user=user, vo=vo, cpus=int(_amount(cpus) or 1), resources=resources)


def _amount(number: str) -> float | None:
    """A whole number above 0; None where it is another, or an expression."""
    whole = number.isascii() and number.isdigit() and len(number) < 10
    return float(number) or None if whole else None


def _plain(digits: str) -> str:
    """The number without leading zeros; as text, for it may be longer than `int` will read."""
    sign = "-" if digits.startswith("-") else ""
    return sign + (digits.lstrip("-").lstrip("0") or "0")


# -- hosts -----------------------------------------------------------------------------------------
# Which machine a run is on, from the names and addresses in a log.

UNKNOWN_HOST: Final = "unknown"
"""The machine of a run whose record names none."""
_SLOT = re.compile(r"(?:slot|vm|backfill)\d+(?:_\d+)*@")
_ADDRESS = re.compile(r"<(?:\[([^\]]*)\]|([^:?>]*))(?::\d*)?(?:\?([^>]*))?>")
_MADE_UP_SOCKET = re.compile(r"(?:[a-z]+_)?\d+_[0-9a-f]+(?:_\d+)?|startd|schedd")


def machine_of_slot(name: str) -> str:
    """The machine of a slot.

    >>> machine_of_slot("slot1_2@m1@node7")
    'm1@node7'
    """
    slot = _SLOT.match(name)
    return name[slot.end() :] if slot else name


def machine_of_run(slot_name: str, address: str) -> str:
    """The machine of a run that no job ad tells more about.

    Several startds on one host go by the names of their sockets; a name that HTCondor makes up
    for a socket says nothing.

    Args:
        slot_name: as in ``SlotName``, or empty.
        address: a sinful string such as ``<10.0.0.1:9618?alias=node7&sock=startd_1_2ab>``, or
            whatever stands in its place, or empty.

    Returns:
        the machine as HTCondor's ``RemoteHost`` would name it, as far as that can be told: by
        slot name, else alias, else IP; `UNKNOWN_HOST` where the record is silent.

    >>> machine_of_run("", "<10.0.0.1:9618?addrs=10.0.0.1-9618>")
    '10.0.0.1'
    """
    match = _ADDRESS.match(address)
    bracketed, plain, query = match.groups() if match else (None, None, None)
    facts = dict(part.partition("=")[::2] for part in (query or "").split("&"))
    host = machine_of_slot(slot_name.strip()) or facts.get("alias", "") or bracketed or plain
    if not host:
        return address.strip() or UNKNOWN_HOST if match is None else UNKNOWN_HOST
    socket = facts.get("sock", "")
    if socket and "@" not in host and not _MADE_UP_SOCKET.fullmatch(socket):
        return f"{socket}@{host}"
    return host


def slot_of(name: str) -> str:
    """The slot's own part of a slot's name; empty where there is none.

    >>> slot_of("slot1_2@m1@node7"), slot_of("node7")
    ('slot1_2', '')
    """
    slot = _SLOT.match(name)
    return name[: slot.end() - 1] if slot else ""


def schedd_of(address: str) -> str:
    """The schedd at an address, as far as an address tells; empty if it names no host.

    By default a schedd has the full name of its host, which is the alias of its address. One
    that was given a local name (``SCHEDD.B``) listens at a socket of that name. Ports and
    sockets that change with every start say nothing.

    >>> schedd_of("<10.0.0.5:9618?addrs=10.0.0.5-9618&alias=ap1.example.org&sock=schedd_1_43af>")
    'ap1.example.org'
    """
    machine = machine_of_run("", address)
    return "" if machine == UNKNOWN_HOST else machine
