"""Adapter of a PBS server (OpenPBS, PBS Pro, Torque), by its own commands."""

from outrider_adapters.pbs.adapter import PBSAdapter

__all__ = ["PBSAdapter"]
