"""What a job's id and ad say: its short id, its user, its group, what it requests."""

from collections.abc import Mapping
from typing import Final

from outrider.api import JobSpec, Resources
from outrider_adapters.readers.short_cache import cached_if_short

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
