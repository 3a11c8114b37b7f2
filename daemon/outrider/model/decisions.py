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
"""Reason of a `defer` that nobody chose: no free machine can take the job."""
IMPOSSIBLE: Final = "impossible"
"""Reason of a `defer` that nobody chose: the job fits on no machine that the site has."""
UNCHOSEN: Final = frozenset({NO_MACHINE, IMPOSSIBLE})
"""Reasons of a `defer` that nobody chose: such a job waits for a machine, not for its policy."""


class Choice:
    """What a policy answers when it is asked where a job should run.

    Attributes:
        machine: number of the machine to start on, or `NOWHERE` to keep the job queued: by choice,
            or, with the reason `NO_MACHINE`, because it fits on none that is free.
        reason: a word or two from a small closed set of the policy's own: ``explore``, ``best``.
        propensity: probability with which the policy would have chosen this cluster (or the
            queue) in this situation; 1.0 for a deterministic rule, None when it is not known.
        scores: the best few alternatives, name to score, or None when nobody asked for them.
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
    """One act of a policy that plans a whole round (`Policy.plan`).

    Attributes:
        action: `START` on all the CPUs asked for; `SHRINK`: start on fewer, or change the CPUs of
            a run that goes on; `PREEMPT`: suspend a run, its CPUs are given back and its work is
            kept; `RESUME` a suspended one, on `cpus`.
        job: the job's number.
        machine: where; of a `PREEMPT` where the run is.
        cpus: CPUs from now on; of a `PREEMPT` 0.
        reason: a word or two from a small closed set of the policy's own.
        propensity: as of a `Choice`.
        scores: as of a `Choice`.
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
