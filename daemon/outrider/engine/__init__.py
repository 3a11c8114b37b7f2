"""The engine: events in, decisions out. No I/O, no wall clock, no global random generator."""

from outrider.engine.engine import Engine
from outrider.engine.intake import Intake
from outrider.engine.seat import Seat
from outrider.engine.wires import Recorder, Sink

__all__ = ["Engine", "Intake", "Recorder", "Seat", "Sink"]
