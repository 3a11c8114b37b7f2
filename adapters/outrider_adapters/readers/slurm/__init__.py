"""Readers of Slurm's records of ended jobs: ``sacct -P`` dumps and the jobcomp/filetxt log."""

from outrider_adapters.readers.slurm.jobcomp import JobcompReader
from outrider_adapters.readers.slurm.sacct import SacctReader

__all__ = ["JobcompReader", "SacctReader"]
