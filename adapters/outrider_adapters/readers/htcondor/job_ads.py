"""Parse a job's id and ad: its short id, user, group and request."""

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
    """Return a job id in HTCondor's short spelling, unique within its schedd only.

    >>> job_id("001", "000", "000")
    '1.0'
    """
    name = f"{_plain(cluster)}.{_plain(proc)}"
    return f"{name}.{_plain(subproc)}" if subproc.strip("0") else name


def job_spec(facts: Mapping[str, str]) -> JobSpec:
    """Return the specification of a job from the attributes of its ad.

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
    """Return one specification for all jobs with the same request. HTCondor's megabytes are MiB."""
    memory_mib, gpus_n = _amount(memory), _amount(gpus)
    requests = memory_mib or gpus_n
    resources = Resources(memory_mib=memory_mib, gpus=gpus_n) if requests else None
    return JobSpec(user=user, vo=vo, cpus=int(_amount(cpus) or 1), resources=resources)


def _amount(number: str) -> float | None:
    """Return a whole number above 0; None for others and for expressions."""
    whole = number.isascii() and number.isdigit() and len(number) < 10
    return float(number) or None if whole else None


def _plain(digits: str) -> str:
    """Return the number without leading zeros; as text, since it may be too long for `int`."""
    sign = "-" if digits.startswith("-") else ""
    return sign + (digits.lstrip("-").lstrip("0") or "0")


# -- hosts -----------------------------------------------------------------------------------------
# Machine of a run, from the names and addresses in a log.

UNKNOWN_HOST: Final = "unknown"
"""Machine of a run whose record contains none."""
ACCESS_POINT: Final = "access point "
"""Prefix of the name of an access point, as the machine of jobs that run beside its schedd."""
_SLOT = re.compile(r"(?:slot|vm|backfill)\d+(?:_\d+)*@")
_ADDRESS = re.compile(r"<(?:\[([^\]]*)\]|([^:?>]*))(?::\d*)?(?:\?([^>]*))?>")
_LOCAL_SOCKET = re.compile(r"schedd(?:_\d+_[0-9a-f]+)?|starter_\d+_[0-9a-f]+_\d+")
_MADE_UP_SOCKET = re.compile(r"(?:[a-z]+_)?\d+_[0-9a-f]+(?:_\d+)?|startd|schedd")


def machine_of_slot(name: str) -> str:
    """Return the machine of a slot.

    >>> machine_of_slot("slot1_2@m1@node7")
    'm1@node7'
    """
    slot = _SLOT.match(name)
    return name[slot.end() :] if slot else name


def machine_of_run(slot_name: str, address: str) -> str:
    """Return the machine of a run without a job ad.

    Several startds on one host are distinguished by the names of their sockets. A name that
    HTCondor generates for a socket is ignored.

    Args:
        slot_name: as in ``SlotName``, or empty.
        address: a sinful string such as ``<10.0.0.1:9618?alias=node7&sock=startd_1_2ab>``, or
                any other text, or empty.

    Returns:
        the machine as HTCondor's ``RemoteHost`` would name it, as far as known: by
        slot name, else alias, else IP; `UNKNOWN_HOST` if the record has none; for a job that
        runs beside its schedd, its access point.

    >>> machine_of_run("", "<10.0.0.1:9618?addrs=10.0.0.1-9618>")
    '10.0.0.1'
    """
    host, socket = _host_and_socket(slot_name, address)
    if not slot_name.strip() and _LOCAL_SOCKET.fullmatch(socket):
        return access_point(host)
    return _named(host, socket)


def access_point(schedd: str) -> str:
    """Return the name of an access point as a machine, by its schedd.

    Its host may have slots, which the jobs that run beside the schedd do not use.
    """
    return f"{ACCESS_POINT}{schedd}"


def _host_and_socket(slot_name: str, address: str) -> tuple[str, str]:
    match = _ADDRESS.match(address)
    bracketed, plain, query = match.groups() if match else (None, None, None)
    facts = dict(part.partition("=")[::2] for part in (query or "").split("&"))
    host = machine_of_slot(slot_name.strip()) or facts.get("alias", "") or bracketed or plain
    if not host:
        return address.strip() or UNKNOWN_HOST if match is None else UNKNOWN_HOST, ""
    return host, facts.get("sock", "")


def _named(host: str, socket: str) -> str:
    """Return a host, with the name of a startd's socket that its site has chosen."""
    if socket and "@" not in host and not _MADE_UP_SOCKET.fullmatch(socket):
        return f"{socket}@{host}"
    return host


def slot_of(name: str) -> str:
    """Return the slot's own part of a slot's name; empty if there is none.

    >>> slot_of("slot1_2@m1@node7"), slot_of("node7")
    ('slot1_2', '')
    """
    slot = _SLOT.match(name)
    return name[: slot.end() - 1] if slot else ""


def schedd_of(address: str) -> str:
    """Return the schedd at an address, as far as the address contains it; empty without a host.

    By default a schedd has the full name of its host, which is the alias of its address. One
    with a local name (``SCHEDD.B``) listens at a socket of that name. Ports and
    sockets that change with every start are ignored.

    >>> schedd_of("<10.0.0.5:9618?addrs=10.0.0.5-9618&alias=ap1.example.org&sock=schedd_1_43af>")
    'ap1.example.org'
    """
    machine = _named(*_host_and_socket("", address))
    return "" if machine == UNKNOWN_HOST else machine
