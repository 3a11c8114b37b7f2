"""Number of examples of a property: a share in `make test`, all in `make check-long`."""

import os
from typing import Final

SHARE: Final = float(os.environ.get("EXAMPLES_SHARE", "0.4"))
"""Share of the examples that a property sets. `make check-long` sets it to 1."""


def examples(whole: int) -> int:
    """Return how many of these are tried in this run, at least one."""
    return max(1, round(SHARE * whole))
