"""What a job asks for, by its ad in the queue."""

from collections.abc import Iterable
from math import ceil
from typing import Any, Final

import msgspec

from outrider.api import JobSpec
from outrider_adapters.htcondor.pool_calls import Ad, number
from outrider_adapters.readers.htcondor.job_ads import SPEC_ATTRIBUTES, job_spec

_AMOUNTS: Final = ("RequestCpus", "RequestMemory", "RequestGPUs")
_FIELDS: Final = ("user", "vo", "cpus", "estimate_s")
_REFERRED_TO: Final = ("MemoryUsage", "ImageSize", "ResidentSetSize")
"""Without a request of the user's own, ``RequestMemory`` is an expression of these."""


def with_estimate(attributes: Iterable[str], estimate_attribute: str | None) -> list[str]:
    """The attributes to ask for, and the one with the user's estimate, where a site has one."""
    estimate = [estimate_attribute] if estimate_attribute else []
    return [*attributes, *_REFERRED_TO, *estimate]


def spec_of(ad: Ad, estimate_attribute: str | None) -> JobSpec:
    """The specification of a job.

    Args:
        ad: of the job, with `SPEC_ATTRIBUTES`.
        estimate_attribute: of the user's estimate of the run time, seconds; None: there is none.
    """
    facts = {name: str(ad[name]) for name in SPEC_ATTRIBUTES if name in ad}
    amounts = {name: f"{ceil(amount)}" for name in _AMOUNTS if (amount := number(ad, name)) > 0}
    spec = job_spec(facts | amounts)
    given = ad.get(estimate_attribute) if estimate_attribute else None
    if isinstance(given, (int, float)) and given > 0:
        return msgspec.structs.replace(spec, estimate_s=float(given))
    return spec


def edited(before: JobSpec, after: JobSpec, is_running: bool) -> dict[str, Any]:
    """The fields that somebody changed.

    What a running job requests may be an expression of what it has used so far; that is no edit.
    """
    fields = _FIELDS if is_running else (*_FIELDS, "resources")
    return {
        field: getattr(after, field)
        for field in fields
        if getattr(after, field) != getattr(before, field)
    }
