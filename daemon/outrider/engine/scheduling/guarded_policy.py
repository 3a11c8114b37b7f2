"""One policy behind a guard: what it was asked and answered is counted, and it may fail.

The scheduling passes ask it; `DecidingPolicy` says when, `PolicyRunner` tells it what happened.
"""

from collections import Counter
from typing import Any

from outrider.api.policy import Policy
from outrider.engine.scheduling.deferral_limit import HandBack
from outrider.engine.scheduling.pending_queue import PendingQueue
from outrider.engine.scheduling.placement import Refusal
from outrider.engine.state.site import Site
from outrider.model.errors import PolicyError
from outrider.model.jobs import Job


class GuardedPolicy:
    """A policy, its queue, and what follows when it fails or chooses what is impossible.

    Args:
        policy: who decides.
        acting: True for the one whose starts are carried out; False in shadow.
        reconsider_s: decision epoch where the policy has none of its own, seconds.
        strict: an error in the policy is raised (replay). Otherwise it is noted in `broken`, and
            the policy is asked no more while the others go on (the daemon).

    Attributes:
        awaits_starts: what it starts is not carried out here, but the batch system is to begin it:
            until it does, nothing else is chosen for the same CPUs.
        hand_back: bounds for how long a job is deferred, in simulations of what levers do; None:
            the policy alone says.
        broken: the error with which the policy failed; empty while it has not.
        decisions, starts: decisions recorded, and of them those that start a job.
        moves: recorded moves other than starts, by action.
        refused: impossible choices, by why (`placement.WHYS`).
    """

    def __init__(self, policy: Policy, acting: bool, reconsider_s: float, strict: bool) -> None:
        self.policy = policy
        self.name = policy.name
        self.acting = acting
        self.strict = strict
        self.awaits_starts = False
        self.hand_back: HandBack | None = None
        self.broken = ""
        own = policy.reconsider_s
        self.reconsider_s = reconsider_s if own is None else own
        self.queue = PendingQueue()
        self.decisions = 0
        self.starts = 0
        self.moves: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()

    def refuse(self, job: Job, machine: Any, refusal: Refusal) -> str:
        """The policy chose what is impossible: the reason with which the job stays queued.

        It is counted in `refused`, and the policy goes on. Raises `PolicyError` where it is strict.
        """
        if self.strict:
            raise PolicyError(
                f"impossible to start job {job.number} on machine {machine} ({refusal.why}): "
                f"asked for {refusal.asked}, but {refusal.left}"
            )
        self.refused[refusal.why] += 1
        return f"refused_{refusal.why}"

    def fail(self, error: Exception) -> None:
        """The policy raised an error: it is asked no more. Raises `PolicyError` where strict."""
        what = "" if isinstance(error, PolicyError) else f"{type(error).__name__}: "
        text = f'policy "{self.name}" failed: {what}{error}'
        if self.strict:
            raise PolicyError(text) from error
        self.broken = text
        self.forget()

    def forget(self) -> None:
        """Drop all that is remembered of jobs."""
        self.queue.clear()

    def explain(self, job: Job, site: Site) -> str:
        """What the policy says of a job; that it could not, if it failed. It may go on deciding."""
        try:
            return str(self.policy.explain(job, site))
        except Exception as error:  # noqa: BLE001 - a stranger's code; nothing hangs on a sentence
            return f"{self.name} could not say why: {type(error).__name__}: {error}"
