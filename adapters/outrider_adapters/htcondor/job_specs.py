"""What a job asks for, by its ad in the queue."""

from collections.abc import Iterable, Sequence
from math import ceil
from typing import Any, Final

import msgspec

from outrider.api import JobSpec
from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.made_of_ads import MadeOfAds
from outrider_adapters.htcondor.pool_calls import Ad, ScheddCalls, number
from outrider_adapters.readers.htcondor.job_ads import SPEC_ATTRIBUTES, job_spec

_AMOUNTS: Final = ("RequestCpus", "RequestMemory", "RequestGPUs")
_FIELDS: Final = ("user", "vo", "cpus", "estimate_s")
_REFERRED_TO: Final = ("MemoryUsage", "ImageSize", "ResidentSetSize")
"""Without a request of the user's own, ``RequestMemory`` is an expression of these."""

_UNASKED: Final = "ServerTime"
"""A schedd adds it to every answer: no two ads would be alike."""


class JobSpecs:
    """Job ads made into what the jobs ask for.

    Args:
        estimate_attribute: of the user's estimate of the run time, seconds; None: there is none.
        eligibility: tells which machines a job may use.
    """

    def __init__(self, estimate_attribute: str | None, eligibility: EligibilityWatch) -> None:
        self._estimate_attribute = estimate_attribute
        self._eligibility = eligibility
        estimate = [estimate_attribute] if estimate_attribute else []
        self._beside = [*SPEC_ATTRIBUTES, *_REFERRED_TO, *estimate]
        self._made = MadeOfAds(self._make)
        self._version = eligibility.version

    def attributes(self, beside: Iterable[str]) -> list[str]:
        """What to ask a history for: these, and what `of` reads of jobs that have left."""
        return list(dict.fromkeys([*beside, *self._beside]))

    def query(self, schedd: ScheddCalls, constraint: str, beside: Iterable[str]) -> Sequence[Any]:
        """The ads of jobs in a queue, with these attributes and all that `of` reads.

        Raises:
            HTCondorException: the schedd does not answer (`AccessPoint.failure`).
        """

        def ask(names: list[str]) -> Sequence[Any]:
            ads = schedd.query(constraint, names)
            for ad in ads:
                ad.pop(_UNASKED, None)
            return ads

        return self._eligibility.ask(ask, self.attributes(beside))

    def of(self, ad: Ad) -> JobSpec:
        """The specification of a job, from its ad."""
        if self._version != self._eligibility.version:
            self._version = self._eligibility.version
            self._made.clear()
        spec = self._made.of(ad)
        self._eligibility.saw(spec.eligible)
        return spec

    def _make(self, ad: Ad) -> JobSpec:
        facts = {name: str(ad[name]) for name in SPEC_ATTRIBUTES if name in ad}
        amounts = {name: f"{ceil(amount)}" for name in _AMOUNTS if (amount := number(ad, name)) > 0}
        spec = job_spec(facts | amounts)
        changes: dict[str, Any] = {}
        if eligible := self._eligibility.class_of(ad):
            changes["eligible"] = eligible
        given = ad.get(self._estimate_attribute) if self._estimate_attribute else None
        if isinstance(given, (int, float)) and given > 0:
            changes["estimate_s"] = float(given)
        return msgspec.structs.replace(spec, **changes) if changes else spec


def edited(before: JobSpec, after: JobSpec, is_running: bool) -> dict[str, Any]:
    """The fields that somebody changed.

    What a running job requests may be an expression of what it has used so far; that is no edit.
    """
    if after is before:  # its ad is as it was
        return {}
    fields = _FIELDS if is_running else (*_FIELDS, "resources", "eligible")
    return {
        field: getattr(after, field)
        for field in fields
        if getattr(after, field) != getattr(before, field)
    }
