"""Ports out of the engine: an actuator that executes decisions, and a log of them."""

from typing import Protocol, runtime_checkable

from outrider.model.decisions import Decision
from outrider.model.jobs import Job


class Actuator(Protocol):
    """Port that executes decisions: the simulation in replay; nothing yet in the daemon."""

    def start(self, job: int, machine: int) -> None:
        """Start a job on a machine, now."""
        ...

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        ...


@runtime_checkable
class PlanActuator(Actuator, Protocol):
    """Actuator that also executes the plans of policies that do more than start jobs."""

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        """Start a queued job on fewer CPUs than it requests, or change those of a running one."""
        ...

    def preempt(self, job: int) -> None:
        """Suspend a running job, now; it gives its CPUs back and keeps its work."""
        ...

    def resume(self, job: int, cpus: int) -> None:
        """Resume a preempted job on its machine."""
        ...


class DecisionLog(Protocol):
    """Port that stores decisions and outcomes."""

    def decided(self, decision: Decision, /) -> None:
        """Store a decision, whether it is executed or not."""
        ...

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """Store the end of a run, or of a queued job, and what a policy learned from it.

        If no policy learns from it, called once with the policy "": for every wasted run, and for
        every other end after `Engine.log_every_end`.
        """
        ...
