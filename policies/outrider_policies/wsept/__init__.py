"""Weighted shortest expected processing time, with run times learned by kind of job."""

from outrider_policies.wsept.policy import Wsept, WseptSettings

__all__ = ["Wsept", "WseptSettings"]
