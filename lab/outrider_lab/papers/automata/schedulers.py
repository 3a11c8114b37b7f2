"""Several schedulers over the same nodes: the many-to-many grid of LAJS, section 3."""

from collections.abc import Sequence
from typing import Any, Protocol, cast

from outrider.api.capabilities import Learns
from outrider.api.policy import Policy, PolicySettings
from outrider.api.site_view import SiteView
from outrider.model.decisions import Choice
from outrider.model.jobs import Job
from outrider.model.outcomes import Outcome


class Told(Protocol):
    """A scheduler that is told of jobs which others sent to the nodes, and how its own ended."""

    def sent(self, job: Job, machine: int, view: SiteView, own: bool = True) -> None:
        """A job was sent to a machine, by itself or by another scheduler."""
        ...

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> Sequence[float]:
        """As `Learns.observe`."""
        ...


class SeveralSchedulers(Learns, Policy):
    """Each user has one scheduler; each scheduler learns from its own jobs alone.

    All see how long the nodes' queues are. For nodes with queues, where whatever is chosen starts.

    Args:
        schedulers: at least one; users are given to them in turns, as they appear.
    """

    name = "several_schedulers"
    description = "several schedulers share the nodes, each with automata of its own"

    def __init__(self, schedulers: Sequence[Policy]) -> None:
        super().__init__(PolicySettings(), schedulers[0].rng)
        self._schedulers = schedulers
        self._of_user: dict[str, int] = {}

    def choose(self, job: Job, evaluation: Any, view: SiteView, may_defer: bool) -> Choice:
        """Its user's scheduler decides; the others see the queue grow."""
        mine = self._of_user.setdefault(job.spec.user, len(self._of_user) % len(self._schedulers))
        choice = self._schedulers[mine].choose(job, evaluation, view, may_defer)
        for number, scheduler in enumerate(self._schedulers):
            cast(Told, scheduler).sent(job, choice.machine, view, own=number == mine)
        return choice

    def group_key(self, job: Job, view: SiteView) -> Any:
        """As the schedulers say."""
        return self._schedulers[0].group_key(job, view)

    def observe(self, outcome: Outcome, view: SiteView, on_policy: bool) -> tuple[()]:
        """All see the queue shrink."""
        for scheduler in self._schedulers:
            cast(Told, scheduler).observe(outcome, view, on_policy)
        return ()
