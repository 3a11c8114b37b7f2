"""Drift: whether learning on line pays where the world changes, against the same policy frozen."""

from outrider_lab.drift.suite import DriftSuite, Treatment, check_treatments, treatments_of
from outrider_lab.drift.worlds import FULL, QUICK, WORLDS

__all__ = [
    "FULL", "QUICK", "WORLDS", "DriftSuite", "Treatment", "check_treatments", "treatments_of",
]  # fmt: skip
