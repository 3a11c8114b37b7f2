"""The engine: events in, decisions out. No I/O, no wall clock, no global random generator."""

from outrider.engine.engine import Engine
from outrider.engine.ingest.event_merger import Intake
from outrider.engine.ports import Recorder, Sink
from outrider.engine.scheduling.policy_runner import Seat

__all__ = ["Engine", "Intake", "Recorder", "Seat", "Sink"]
