"""The order of tests: files that wait for real peers are spread among those that compute.

Several processes share the tests, a file each, in this order. Side by side, files that wait would
leave the cores idle; they begin early, so that none is left alone at the end.
"""

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path
from typing import Final

import pytest

_PEERS: Final = Path(__file__).parent
_UNTIL: Final = 0.75
"""The last of them stands after this part of the others."""


def spread(tests: Sequence[pytest.Item]) -> list[pytest.Item]:
    """The same tests, file by file."""
    files = [(path, list(of)) for path, of in groupby(tests, lambda test: test.path)]
    waiting = [of for path, of in files if path.is_relative_to(_PEERS)]
    others = [of for path, of in files if not path.is_relative_to(_PEERS)]
    placed = [(_UNTIL * at / len(waiting), of) for at, of in enumerate(waiting)]
    placed += [(at / len(others), of) for at, of in enumerate(others)]
    return [test for _, of in sorted(placed, key=lambda one: one[0]) for test in of]
