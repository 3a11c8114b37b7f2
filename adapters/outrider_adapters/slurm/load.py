"""Whether the controller has so much to do that it should be asked less often."""

import re
from typing import Final

_NUMBER = re.compile(r"^(Server thread count|Agent queue size):\s*(\d+)", re.MULTILINE)
_MUCH: Final = {"Server thread count": 100, "Agent queue size": 1_000}
"""Of 256 threads that a controller has at most; of messages to nodes that wait to be sent."""


def is_busy(shown: str) -> bool:
    """Whether a controller is busy, by what ``sdiag`` prints."""
    return any(int(number) >= _MUCH[what] for what, number in _NUMBER.findall(shown))
