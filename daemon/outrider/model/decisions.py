"""Decisions: what a policy chose for a job, and why."""

from typing import Any, Final

import msgspec

START: Final = "start"
DEFER: Final = "defer"
PREEMPT: Final = "preempt"
RESUME: Final = "resume"
SHRINK: Final = "shrink"
ACTIONS: Final = ("start", "defer", "preempt", "resume", "shrink", "wake", "sleep")
MODES: Final = ("observe", "shadow", "canary", "active")

NOWHERE: Final = -1
NO_MACHINE: Final = "no_machine"
"""Reason of a `defer` not chosen by the policy: no free machine can take the job."""
IMPOSSIBLE: Final = "impossible"
"""Reason of a `defer` not chosen by the policy: the job fits on no machine of the site."""
UNCHOSEN: Final = frozenset({NO_MACHINE, IMPOSSIBLE})
"""Reasons of a `defer` not chosen by the policy: the job waits for a machine."""


class Choice:
    """Where a policy starts a job, or that it defers it.

    Attributes:
        machine: number of the machine to start on, or `NOWHERE` to leave the job queued: deferred
            or, with the reason `NO_MACHINE`, because it fits on no free machine.
        reason: a word or two of a small closed set of the policy, such as ``explore``, ``best``.
        propensity: probability with which the policy would have chosen this cluster (or the
            queue) in this situation; 1.0 for a deterministic rule, None if unknown.
        scores: the best alternatives, name to score, or None if not requested.
    """

    __slots__ = ("machine", "propensity", "reason", "scores")

    def __init__(
        self,
        machine: int,
        reason: str,
        propensity: float | None = None,
        scores: dict[str, float] | None = None,
    ) -> None:
        self.machine = machine
        self.reason = reason
        self.propensity = propensity
        self.scores = scores


class Move(msgspec.Struct, frozen=True, gc=False):
    """One act of a policy that plans whole passes (`Plans.plan`).

    Attributes:
        action: `START` on all requested CPUs; `SHRINK`: start on fewer, or change the CPUs of a
            run; `PREEMPT`: suspend a run, which releases its CPUs and keeps its work; `RESUME` a
            suspended run, on `cpus`.
        job: the job's number.
        machine: number of the machine; for a `PREEMPT` that of the run.
        cpus: CPUs from now on; 0 for a `PREEMPT`.
        reason: a word or two of a small closed set of the policy.
        propensity: as for a `Choice`.
        scores: as for a `Choice`.
    """

    action: str
    job: int
    machine: int
    cpus: int
    reason: str
    propensity: float | None = None
    scores: dict[str, float] | None = None


class Decision(msgspec.Struct, gc=False):
    """One row of the ledger: a decision, acted on or not. Names, not numbers.

    Attributes are those of FORMATS: `time_s` in seconds of event time, `action` one of `ACTIONS`,
    `machine` None unless the action has one, `input_age_s` how old the newest input was.
    """

    time_s: float
    job: str
    action: str
    machine: str | None
    cpus: int
    reason: str
    policy: str
    mode: str
    propensity: float | None = None
    scores: dict[str, float] | None = None
    input_age_s: float | None = None
    input: str = "full"

    def as_row(self, seq: int) -> dict[str, Any]:
        """The row as it is exported, with its sequence number."""
        return {"time_s": self.time_s, "seq": seq, **msgspec.structs.asdict(self)}
