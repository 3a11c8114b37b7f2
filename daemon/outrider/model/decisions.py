"""Decisions: what a policy chose for a job, and why."""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, Protocol, Self

import msgspec

START: Final = "start"
DEFER: Final = "defer"
PREEMPT: Final = "preempt"
RESUME: Final = "resume"
SHRINK: Final = "shrink"
ACTIONS: Final = ("start", "defer", "preempt", "resume", "shrink", "wake", "sleep")
NOWHERE: Final = -1
NO_MACHINE: Final = "no_machine"
"""Reason of a `defer` not chosen by the policy: no free machine can take the job."""
IMPOSSIBLE: Final = "impossible"
"""Reason of a `defer` not chosen by the policy: the job fits on no machine of the site."""
UNCHOSEN: Final = frozenset({NO_MACHINE, IMPOSSIBLE})
"""Reasons of a `defer` not chosen by the policy: the job waits for a machine."""


class Choice(msgspec.Struct, gc=False):
    """A policy's choice for one job: the machine to start on, or to defer it.

    Attributes:
        machine: number of the machine to start on, or `NOWHERE` to leave the job queued: deferred
            or, with the reason `NO_MACHINE`, because it fits on no free machine.
        reason: a word or two of a small closed set of the policy, such as ``explore``, ``best``.
        propensity: probability with which the policy would have chosen this cluster (or the
            queue) in this situation; 1.0 for a deterministic rule, None if unknown.
        scores: the best alternatives, name to score, or None if not requested.
    """

    machine: int
    reason: str
    propensity: float | None = None
    scores: dict[str, float] | None = None


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
    """A decision, acted on or not, as the engine makes it: jobs and machines are numbers.

    The scheduling pass makes one whenever what is decided for a job begins, changes or ends, and
    hands it to the engine's decision_log. Whoever writes it down for people makes a `DecisionRow`.

    Attributes:
        time_s: event time in seconds.
        job: the job's number.
        action: one of `ACTIONS`.
        machine: the machine's number; `NOWHERE` unless the action has one.
        cpus: CPUs from now on; 0 unless the action has some.
        reason: a word or two from a small closed set.
        policy: name of the policy.
        propensity, scores: as of a `Choice`.
    """

    time_s: float
    job: int
    action: str
    machine: int
    cpus: int
    reason: str
    policy: str
    propensity: float | None = None
    scores: dict[str, float] | None = None


class Names(Protocol):
    """Interface to the names of jobs and machines by number: a trace, or the normaliser."""

    @property
    def job_names(self) -> Sequence[str] | Mapping[int, str]:
        """Names of the jobs."""
        ...

    @property
    def machine_names(self) -> Sequence[str]:
        """Names of the machines."""
        ...


class DecisionRow(msgspec.Struct, gc=False):
    """One row of the ledger: a decision in names, and under what conditions it was made.

    Attributes are the columns of the ledger: `time_s` in seconds of event time, `action` one of
    `ACTIONS`, `machine` None unless the action has one, `input_age_s` how old the newest input was,
    `gate` the answer of the gate (`outrider.acting.gate`), None where it was not asked.
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
    gate: str | None = None

    @classmethod
    def of(
        cls,
        decision: Decision,
        names: Names,
        mode: str,
        *,
        input_age_s: float | None = None,
        input: str = "full",  # noqa: A002 - the ledger's own word for it
        gate: str | None = None,
    ) -> Self:
        """Return the row of a decision; `names` has those of its job and machine."""
        machine = decision.machine
        return cls(
            decision.time_s,
            names.job_names[decision.job],
            decision.action,
            None if machine == NOWHERE else names.machine_names[machine],
            decision.cpus,
            decision.reason,
            decision.policy,
            mode,
            decision.propensity,
            decision.scores,
            input_age_s,
            input,
            gate,
        )

    def as_row(self, seq: int) -> dict[str, Any]:
        """Return the row as it is exported, with its sequence number."""
        return {"time_s": self.time_s, "seq": seq, **msgspec.structs.asdict(self)}


# -- outcomes --------------------------------------------------------------------------------------
# Outcomes: how a run ended. Policies learn only from these.

COMPLETED_RUN: Final = "completed"
EVICTED_RUN: Final = "evicted"
REMOVED_RUN: Final = "removed"


class Outcome(msgspec.Struct):
    """The end of a run, or of a job that left the queue without one.

    Attributes:
        job: the job's number.
        key: the policy's `group_key` of the job when the run started.
        machine: number of its machine, `NOWHERE` if the job left the queue without a start.
        cluster: number of that machine's cluster, or `NOWHERE`.
        start_s, end_s: the run, in seconds of event time.
        run_s: seconds of work in it (without suspended time).
        ending: ``completed``, ``evicted`` (the job is queued again) or ``removed`` (it is gone).
        reason: of an eviction or removal, one of `EVICTION_REASONS`; empty if completed.
    """

    job: int
    key: Hashable
    machine: int
    cluster: int
    start_s: float
    end_s: float
    run_s: float
    ending: str
    reason: str = ""
