"""The client of the negotiator."""

from collections.abc import Callable

from outrider_adapters.htcondor.bindings import ClassAd
from outrider_adapters.mock_condor.accountant import Accountant
from outrider_adapters.mock_condor.faults import Transport

_NO_ANSWER = "Unable to connect to the negotiator"


class Negotiator:
    """A client with the calls of ``htcondor2.Negotiator``.

    Changes by a client without rights are ignored without an error: the real negotiator was
    observed to return None too.
    """

    def __init__(
        self, accountant: Accountant, transport: Transport, now: Callable[[], float], may_set: bool
    ) -> None:
        self._accountant = accountant
        self._transport = transport
        self._now = now
        self._may_set = may_set

    def getPriorities(self, rollup: bool = False) -> list[ClassAd]:  # noqa: N802  # htcondor2's name
        """One accounting ad per submitter: Name, Priority (effective), PriorityFactor, ...

        Raises:
            HTCondorException: the negotiator does not answer.
        """
        self._transport.call(_NO_ANSWER)
        return self._accountant.ads(self._now())

    def setPriority(self, user: str, priority: float) -> None:  # noqa: N802
        """Set the real priority.

        Raises:
            ValueError: the user has no domain, or the value is negative.
        """
        if priority < 0:
            raise ValueError("User priority must be non-negative")
        if self._may(user):
            self._accountant.set_real_priority(user, priority, self._now())

    def setFactor(self, user: str, factor: float) -> None:  # noqa: N802
        """Set the priority factor.

        Raises:
            ValueError: the user has no domain, or the factor is below 1.
        """
        if factor < 1:
            raise ValueError("Priority factors must be >= 1")
        if self._may(user):
            self._accountant.set_factor(user, factor, self._now())

    def setCeiling(self, user: str, ceiling: int) -> None:  # noqa: N802
        """Set the most slots that the user may have.

        Raises:
            ValueError: the user has no domain, or the ceiling is negative.
        """
        if ceiling <= -1:
            raise ValueError("Ceiling must be greater than -1.")
        if self._may(user):
            self._accountant.set_ceiling(user, int(ceiling), self._now())

    def _may(self, user: str) -> bool:
        if "@" not in user:
            raise ValueError("You must specify the submitter (user@uid.domain)")
        self._transport.call(_NO_ANSWER)
        return self._may_set
