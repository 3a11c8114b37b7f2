"""The two ports out of the engine: an actuator for decisions, and a log of them."""

from typing import Protocol, runtime_checkable

from outrider.model.decisions import Decision
from outrider.model.jobs import Job


class Actuator(Protocol):
    """What carries decisions out: the simulation in replay; in the daemon nothing does yet."""

    def start(self, job: int, machine: int) -> None:
        """Start a job on a machine, now."""
        ...

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        ...


@runtime_checkable
class PlanActuator(Actuator, Protocol):
    """What also carries out the plans of policies that do more than start jobs."""

    def shrink(self, job: int, machine: int, cpus: int) -> None:
        """Start a queued job on fewer CPUs than it asks for, or change those of a running one."""
        ...

    def preempt(self, job: int) -> None:
        """Suspend a running job, now; it gives its CPUs back and keeps its work."""
        ...

    def resume(self, job: int, cpus: int) -> None:
        """A preempted job goes on, on its machine."""
        ...


class DecisionLog(Protocol):
    """What keeps decisions and outcomes."""

    def decided(self, decision: Decision, /) -> None:
        """A decision was made, to be acted on or not."""
        ...

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """A run ended, or a job left the queue, and a policy learned from it.

        Of a run that was thrown away and that no policy learns from, called once, with "". So of
        every other end, where the engine was told to (`Engine.tell_every_end`).
        """
        ...
