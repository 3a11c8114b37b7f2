"""The contract of a lever: one thing that Outrider may change in a batch system, for a while.

A lever belongs to an adapter, which declares it (`outrider.api.Adapter.levers`). It is handed the
decisions that the gate answered with *act*, after they were recorded. None is made in a mode that
never acts.
"""

from typing import Any, ClassVar

from outrider.model.decisions import DecisionRow


class Lever:
    """Base of every lever.

    Whatever it changes lapses *by itself*: the batch system forgets it `lease_s` after `apply`,
    also if Outrider was killed in between. What users asked for (requirements, rank, priority,
    holds) is never edited. Both methods may block: they are called in a thread of the lever's own,
    one call at a time; what they raise is logged and counted.

    Class variables:
        name, description: as in `outrider.api.Policy`.
        actions: the decisions that it carries out, such as ``("start",)``: some of
            `outrider.model.decisions.ACTIONS`, never ``defer``. An action has one lever at a site.
        lease_s: for how many seconds a change lasts that is not renewed; above 0.

    Args:
        adapter: the adapter that declares it, made with its settings; perhaps not open.
    """

    name: ClassVar[str]
    description: ClassVar[str]
    actions: ClassVar[tuple[str, ...]]
    lease_s: ClassVar[float]

    def __init__(self, adapter: Any) -> None:
        self.adapter = adapter

    def apply(self, decision: DecisionRow) -> None:
        """Make the change of a decision; again for the same job: renew it for another `lease_s`.

        Args:
            decision: names job and machine as the batch system does.

        Raises:
            PeerError: the batch system refused or does not answer, or does not show the change
                when it is read back.
        """
        raise NotImplementedError

    def withdraw(self, job: str) -> None:
        """Take back what `apply` changed for a job, before it lapses; nothing if there is nothing.

        Raises:
            PeerError: the batch system refused or does not answer.
        """
        raise NotImplementedError
