"""Placement and deferral by learned job lengths and owners' returns."""

from outrider_policies.survival.policy import Survival
from outrider_policies.survival.settings import SurvivalSettings

__all__ = ["Survival", "SurvivalSettings"]
