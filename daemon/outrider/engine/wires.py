"""The two wires that lead out of the engine: what it brings about, and what it writes down."""

from typing import Protocol

from outrider.engine.seat import Seat
from outrider.model.decisions import Choice
from outrider.model.jobs import Job


class Sink(Protocol):
    """What carries decisions out: the virtual site in replay, the gate in the daemon."""

    def start(self, job: int, machine: int) -> None:
        """Start a job on a machine, now."""
        ...

    def wake_at(self, time_s: float) -> None:
        """Deliver a tick at `time_s`, after all other events of that moment."""
        ...


class Recorder(Protocol):
    """What writes the ledger."""

    def decided(
        self, seat: Seat, job: int, action: str, machine: int, cpus: int, reason: str,
        choice: Choice | None,
    ) -> None:  # fmt: skip
        """A decision was made, to be acted on or not."""
        ...

    def ended(
        self, seat: Seat | None, job: Job, ending: str, reason: str, run_s: float,
        reward: float | None, on_policy: bool,
    ) -> None:  # fmt: skip
        """A run ended, or a job left, and the seat's policy was told.

        Of a run that was thrown away and that no seat learns from, told once, with None.
        """
        ...
