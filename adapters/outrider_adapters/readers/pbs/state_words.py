"""What PBS calls the states of jobs.

A job that waits for a time (W) is held back like one that is held (H): both are ``held`` here.
"""

from types import MappingProxyType
from typing import Final

STATE_WORDS: Final = MappingProxyType(
    {"queued": "Q", "running": "R", "suspended": "S", "held": "H or W"}
)
