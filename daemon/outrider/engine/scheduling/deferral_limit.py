"""Limit on how long a job may be deferred: one rule for levers and for simulations."""

from typing import Final, Generic, TypeVar

from outrider.api.capabilities import Groups, Learns, Listens
from outrider.api.policy import Policy
from outrider.engine.scheduling.placement import OpenPlaces
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE, Choice
from outrider.model.jobs import Job

HANDED_BACK: Final = "handed_back"
"""Reason of a start after the policy deferred the job for as long as it may."""

JobT = TypeVar("JobT", int, str)


class DeferralLimit(Generic[JobT]):
    """Limit on how long each job may be kept in the queue, from when it was first kept.

    The time continues while the policy decides otherwise for a while, and ends when the job starts
    or leaves.

    Args:
        longest_s: seconds; infinite: there is no limit.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._since_s: dict[JobT, float] = {}

    def left_s(self, job: JobT, now_s: float) -> float:
        """Return for how many seconds the job may still be kept; 0 or less: no longer."""
        return self._longest_s - (now_s - self._since_s.get(job, now_s))

    def keep(self, job: JobT, now_s: float) -> None:
        """Record that the job is kept in the queue."""
        self._since_s.setdefault(job, now_s)

    def end(self, job: JobT) -> None:
        """Forget a job that starts or leaves."""
        self._since_s.pop(job, None)


class HandBack:
    """Return of simulated jobs to the batch system when they were deferred for long enough.

    As with levers: a job that is no longer kept starts where the batch system wants, not where the
    policy would start it.

    Args:
        longest_s: maximum time for which a job may be kept, seconds.
        batch_system: the policy that represents the batch system. It receives no events here, so
            in place of one that learns a machine is drawn.
    """

    def __init__(self, longest_s: float, batch_system: Policy) -> None:
        self.limit: DeferralLimit[int] = DeferralLimit(longest_s)
        self._batch_system = batch_system

    def choose(self, job: Job, view: Site | OpenPlaces) -> Choice:
        """Return where the batch system starts a job; it may start somewhere."""
        policy = self._batch_system
        machine = NOWHERE
        if not isinstance(policy, Groups | Learns | Listens):
            machine = policy.choose(job, None, view, False).machine
        return Choice(view.draw(policy.rng) if machine == NOWHERE else machine, HANDED_BACK)
