"""The modes of the daemon, from the one that changes nothing to the one that acts on all jobs."""

from typing import Final

MODES: Final = ("observe", "shadow", "canary", "active")
