"""Vengerov's utility-based scheduler, which learns the value of each machine's state."""

from outrider_policies.planning.fuzzy_td.policy import FuzzyTd, FuzzyTdSettings

__all__ = ["FuzzyTd", "FuzzyTdSettings"]
