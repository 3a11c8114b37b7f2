"""Watching a Slurm cluster through its own commands."""

from outrider_adapters.slurm.adapter import SlurmAdapter

__all__ = ["SlurmAdapter"]
