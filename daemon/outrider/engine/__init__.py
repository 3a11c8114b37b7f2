"""The engine: events in, decisions out. No I/O, no wall clock, no global random generator."""

from outrider.engine.engine import Engine
from outrider.engine.ingest.event_merger import EventMerger
from outrider.engine.ports import Actuator, DecisionLog
from outrider.engine.scheduling.policy_runner import PolicyRunner

__all__ = ["Actuator", "DecisionLog", "Engine", "EventMerger", "PolicyRunner"]
