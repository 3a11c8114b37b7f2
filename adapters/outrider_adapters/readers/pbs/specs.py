"""What a record says of a job's user: who, for which VO, how much, for how long."""

from collections.abc import Mapping
from typing import Final

from outrider.api import JobSpec
from outrider_adapters.readers.pbs.fields import duration_s, epoch
from outrider_adapters.readers.pbs.places import cpus_requested, place_of
from outrider_adapters.readers.short_cache import cached_if_short

NO_GROUP: Final = "-default-"
NO_PROJECT: Final = "_pbs_project_default"
"""What PBS writes where nobody chose a group or project."""

_TRUE: Final = frozenset({"True", "true", "TRUE", "1"})


def spec_of(fields: Mapping[str, str], submit_s: float | None) -> JobSpec:
    """The specification of a job by the pairs of a record.

    The VO is its ``account``, else its ``group``, else its ``project``. The class is interactive
    only where the record says ``interactive``. CPUs are those it was given, else those it asked
    for: a request in nodes leaves open how many a node has.

    Args:
        fields: the pairs of a Q, S, R or E record.
        submit_s: Unix seconds. Eligible later (``etime``) is told apart; no wait runs before.

    Raises:
        ValueError: ``etime`` is no time.

    >>> spec = spec_of({"owner": "alice@login", "group": "physics", "etime": "90"}, 60.0)
    >>> spec.user, spec.vo, spec.eligible_s
    ('alice', 'physics', 90.0)
    """
    eligible_s = epoch(fields, "etime")
    if eligible_s is not None and submit_s is not None and eligible_s <= submit_s:
        eligible_s = None
    exec_host = fields.get("exec_host")
    cpus = place_of(exec_host)[1] if exec_host else cpus_requested(fields)
    return _shared_spec(
        fields.get("user") or fields.get("owner", "").partition("@")[0],
        _vo(fields),
        "interactive" if fields.get("interactive", "") in _TRUE else "batch",
        cpus,
        fields.get("Resource_List.walltime", ""),
        eligible_s,
    )


def _vo(fields: Mapping[str, str]) -> str:
    account = fields.get("account")
    if account:
        return account
    group = fields.get("group", NO_GROUP)
    if group not in ("", NO_GROUP):
        return group
    project = fields.get("project", NO_PROJECT)
    return project if project not in ("", NO_PROJECT) else "all"


@cached_if_short(entries=4096)
def _shared_spec(
    user: str, vo: str, job_class: str, cpus: int, walltime: str, eligible_s: float | None
) -> JobSpec:
    """One record for all jobs that ask for the same."""
    return JobSpec(
        user=user, vo=vo, job_class=job_class, cpus=cpus, estimate_s=duration_s(walltime),
        eligible_s=eligible_s,
    )  # fmt: skip
