"""How many examples a property is tried on: a share in `make test`, all in `make check-long`."""

import os
from typing import Final

SHARE: Final = float(os.environ.get("EXAMPLES_SHARE", "0.4"))
"""Of the examples that a property names. `make check-long` sets it to 1."""


def examples(whole: int) -> int:
    """Return how many of these are tried in this run, at least one."""
    return max(1, round(SHARE * whole))
