"""Drift: whether learning on line pays where the world changes, against the same policy frozen."""

from outrider.lab.drift.suite import run_suite
from outrider.lab.drift.trial import Rival, check_rivals, rivals_of
from outrider.lab.drift.worlds import FULL, QUICK, WORLDS

__all__ = ["FULL", "QUICK", "WORLDS", "Rival", "check_rivals", "rivals_of", "run_suite"]
