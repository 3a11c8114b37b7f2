"""Scoring of run time estimators: what each would have said of every job, against what came."""

from outrider_lab.estimates.scores import Told, score, tell

__all__ = ["Told", "score", "tell"]
