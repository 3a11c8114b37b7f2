"""What HTCondor calls the states of jobs (JobStatus 1, 2, 7 and 5)."""

from types import MappingProxyType
from typing import Final

STATE_WORDS: Final = MappingProxyType(
    {"queued": "Idle", "running": "Running", "suspended": "Suspended", "held": "Held"}
)
