"""The lever of an HTCondor pool: jobs stay in the queue, or are sent to a group of machines."""

from collections.abc import Sequence
from typing import Any

from outrider.api import DecisionRow, Lever, PeerError
from outrider_adapters.htcondor.diagnosis import Finding
from outrider_adapters.htcondor.lease_attributes import LEASES_CONFIG, LeaseTerms, Wanted
from outrider_adapters.htcondor.pool_process import (
    LEASE,
    PROVE,
    RELEASE,
    RELEASE_ALL,
    PoolProcess,
)


class LeasedAttributes(Lever):
    """Sets attributes of jobs that the pool heeds while a time in them lies ahead.

    A deferred job starts nowhere, and may be shown as held (`defer_by`); one that is to start is
    sent to the machine group that was decided for, or prefers it (`start_by`), and may come before
    the others of its user (`start_first`). The pool is asked in a process of the lever's own, with
    the right to edit everybody's jobs: a token of a queue super user.
    """

    name = "leased_attributes"
    description = (
        "keeps jobs in the queue, or sends them to a group of machines, by leased attributes"
    )
    actions = ("start", "defer")
    setup = LEASES_CONFIG

    def __init__(self, adapter: Any) -> None:
        super().__init__(adapter)
        settings = adapter.settings
        self.lease_s = settings.lease_s
        self._terms = LeaseTerms(
            by=adapter.identity,
            lease_s=settings.lease_s,
            cluster_attribute=settings.cluster_attribute,
            pins=settings.start_by == "pin",
            first=settings.start_first,
            shows=settings.defer_by == "hold",
        )
        self._process: PoolProcess | None = None

    def apply(self, decisions: Sequence[DecisionRow]) -> dict[str, str]:
        """As `Lever.apply`; refused are jobs whose requirements heed no lease, too."""
        wanted = {d.job: Wanted(d.action == "defer", d.machine or "") for d in decisions}
        refused: dict[str, str] = self._ask(LEASE, (self._terms, wanted))
        return refused

    def withdraw(self, jobs: Sequence[str]) -> dict[str, str]:
        """As `Lever.withdraw`."""
        refused: dict[str, str] = self._ask(RELEASE, (self._terms, list(jobs)))
        return refused

    def withdraw_all(self) -> int:
        """As `Lever.withdraw_all`."""
        jobs: int = self._ask(RELEASE_ALL, self._terms)
        return jobs

    def prove(self) -> list[Finding]:
        """As `Lever.prove`: at each access point by a job on hold."""
        found: list[Finding] = self._ask(PROVE, self._terms)
        return found

    def close(self) -> None:
        """End the process that asks."""
        if self._process is not None:
            self._process.close()
            self._process = None

    def _ask(self, question: str, argument: Any) -> Any:
        if self._process is None:
            self._process = PoolProcess(self.adapter.settings)
        try:
            return self._process.ask(question, argument)
        except RuntimeError as error:  # it is gone: the next question gets another
            self.close()
            raise PeerError(f"the pool cannot be asked: {error}") from error
