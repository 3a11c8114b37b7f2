"""Autoclusters: jobs that are equal for matchmaking, so that one match serves all of them.

As in HTCondor, an attribute of jobs is *significant* if a ``START`` or ``RANK`` of a machine or
the negotiator's own rank reads it, if a job's own ``Requirements`` or ``Rank`` does, or if another
significant attribute does; jobs whose significant attributes are the same expressions form an
autocluster.
"""

from collections.abc import Iterable

from outrider_adapters.htcondor.bindings import ClassAd, ExprTree
from outrider_adapters.mock_condor.claims import QueuedJob

_OF_JOBS = ("Requirements", "Rank")
_OF_SLOTS = ("Start", "Rank")
_SCOPES = ("my.", "target.")


class Autoclusters:
    """Numbers autoclusters from 1. Significant attributes are never dropped, as in a schedd."""

    def __init__(self) -> None:
        self._significant: set[str] = {name.lower() for name in _OF_JOBS}
        self._names: tuple[str, ...] = tuple(sorted(self._significant))
        self._numbers: dict[tuple[str, ...], int] = {}
        self._read: set[tuple[str, ...]] = set()
        self._oldest_valid = 1

    @property
    def significant(self) -> str:
        """``AutoClusterAttrs``: names, separated by commas."""
        return ",".join(self._names)

    def read_slot(self, ad: ClassAd, negotiator_rank: ExprTree) -> None:
        """Add the job attributes that a slot and the negotiator refer to."""
        expressions = [ad.lookup(name) for name in _OF_SLOTS if name in ad]
        texts = tuple(map(repr, expressions))
        if texts not in self._read:
            self._read.add(texts)
            for expression in (*expressions, negotiator_rank):
                self._learn(ad.externalRefs(expression))

    def number_of(self, job: QueuedJob) -> int:
        """The autocluster of a job."""
        if job.autocluster < self._oldest_valid:
            signature = self._signature(job.ad)
            while signature not in self._numbers and self._read_job(job.ad):
                signature = self._signature(job.ad)
            fresh = len(self._numbers) + self._oldest_valid
            job.autocluster = self._numbers.setdefault(signature, fresh)
            job.ad["AutoClusterId"] = job.autocluster
            job.ad["AutoClusterAttrs"] = self.significant
        return job.autocluster

    def _signature(self, ad: ClassAd) -> tuple[str, ...]:
        return tuple(repr(ad.lookup(name)) if name in ad else "" for name in self._names)

    def _read_job(self, ad: ClassAd) -> bool:
        """Add the attributes that a job's significant ones refer to; whether any was new."""
        before = self._names
        for name in before:
            if name in ad:
                self._learn(ad.internalRefs(ad.lookup(name)))
                self._learn(ad.externalRefs(ad.lookup(name)))
        return self._names != before

    def _learn(self, references: Iterable[str]) -> None:
        names = {_bare(reference) for reference in references if reference}
        if names <= self._significant:
            return
        self._significant |= names
        self._names = tuple(sorted(self._significant))
        self._oldest_valid += len(self._numbers)
        self._numbers.clear()


def _bare(reference: str) -> str:
    name = reference.lower()
    for scope in _SCOPES:
        name = name.removeprefix(scope)
    return name
