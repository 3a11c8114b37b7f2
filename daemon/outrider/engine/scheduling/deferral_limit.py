"""For how long a job may be kept in the queue: one rule for levers and for simulations."""

from typing import Final, Generic, TypeVar

from outrider.api.capabilities import Groups, Learns, Listens
from outrider.api.policy import Policy
from outrider.engine.scheduling.placement import OpenPlaces
from outrider.engine.state.site import Site
from outrider.model.decisions import NOWHERE, Choice
from outrider.model.jobs import Job

HANDED_BACK: Final = "handed_back"
"""Why a job starts that the policy would have deferred for longer than it may."""

JobT = TypeVar("JobT", int, str)


class DeferralLimit(Generic[JobT]):
    """For how long each job may be kept in the queue, from the moment when it was first kept.

    The time goes on while the policy decides otherwise for a while, and ends when the job starts
    or leaves.

    Args:
        longest_s: seconds; infinite: there is no limit.
    """

    def __init__(self, longest_s: float) -> None:
        self._longest_s = longest_s
        self._since_s: dict[JobT, float] = {}

    def left_s(self, job: JobT, now_s: float) -> float:
        """For how long the job may still be kept; 0 or less: not any more."""
        return self._longest_s - (now_s - self._since_s.get(job, now_s))

    def keep(self, job: JobT, now_s: float) -> None:
        """The job is kept in the queue."""
        self._since_s.setdefault(job, now_s)

    def end(self, job: JobT) -> None:
        """The job starts or leaves."""
        self._since_s.pop(job, None)


class HandBack:
    """Hands a simulated job that was kept for long enough back to the batch system.

    So it goes with levers: what is not kept any more starts as the batch system likes, not where
    the policy would have it.

    Args:
        longest_s: for how long a job may be kept, seconds.
        batch_system: the policy that stands for the batch system. It is told of nothing here, so in
            place of one that learns a machine is drawn.
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
