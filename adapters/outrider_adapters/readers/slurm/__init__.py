"""What Slurm writes about jobs that ended: ``sacct -P`` dumps and the jobcomp/filetxt log."""

from outrider_adapters.readers.slurm.jobcomp import JobcompReader
from outrider_adapters.readers.slurm.sacct import SacctReader

__all__ = ["JobcompReader", "SacctReader"]
