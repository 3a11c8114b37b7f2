"""The engine: events in, decisions out. No I/O, no wall clock, no global random generator."""

from outrider.engine.engine import Engine, Recorder, Sink
from outrider.engine.intake import Intake
from outrider.engine.seat import Seat

__all__ = ["Engine", "Intake", "Recorder", "Seat", "Sink"]
