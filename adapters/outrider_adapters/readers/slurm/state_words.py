"""What Slurm calls the states of jobs. One that is held is PENDING there, with a reason."""

from types import MappingProxyType
from typing import Final

STATE_WORDS: Final = MappingProxyType(
    {"queued": "PENDING", "running": "RUNNING", "suspended": "SUSPENDED", "held": "PENDING"}
)
