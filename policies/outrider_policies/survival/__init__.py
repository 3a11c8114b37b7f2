"""Placement and deferral by learned job lengths and owners' returns."""

from outrider_policies.survival.policy import Survival, SurvivalSettings

__all__ = ["Survival", "SurvivalSettings"]
