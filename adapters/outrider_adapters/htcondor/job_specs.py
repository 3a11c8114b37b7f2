"""What a job asks for, by its ad in the queue."""

from collections.abc import Iterable

import msgspec

from outrider.api import JobSpec
from outrider_adapters.htcondor.pool_calls import Ad
from outrider_adapters.readers.htcondor.job_ads import SPEC_ATTRIBUTES, job_spec

__all__ = ["SPEC_ATTRIBUTES", "spec_of", "with_estimate"]


def with_estimate(attributes: Iterable[str], estimate_attribute: str | None) -> list[str]:
    """The attributes to ask for, and the one with the user's estimate, where a site has one."""
    return [*attributes, *([estimate_attribute] if estimate_attribute else [])]


def spec_of(ad: Ad, estimate_attribute: str | None) -> JobSpec:
    """The specification of a job.

    Args:
        ad: of the job, with `SPEC_ATTRIBUTES`.
        estimate_attribute: of the user's estimate of the run time, seconds; None: there is none.
    """
    spec = job_spec({name: str(ad[name]) for name in SPEC_ATTRIBUTES if name in ad})
    given = ad.get(estimate_attribute) if estimate_attribute else None
    if isinstance(given, (int, float)) and given > 0:
        return msgspec.structs.replace(spec, estimate_s=float(given))
    return spec
