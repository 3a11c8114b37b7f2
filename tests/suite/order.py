"""The order of the files of tests: long ones first, those that wait among those that compute.

Several processes share the tests, a file each, in this order. Side by side, files that wait would
leave the cores idle; a long file that begins late would be alone at the end.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Final

import pytest

from tests.suite.costs import Cost

WAITS_RATIO: Final = 4.0
"""A file waits if it takes this many times as long by the clock as it takes CPU."""
_UNTIL: Final = 0.75
"""The last of them stands after this part of the others."""
_UNKNOWN: Final = Cost(5.0, 10.0)


def in_order(tests: Sequence[pytest.Item], costs: Mapping[str, Cost]) -> list[pytest.Item]:
    """Return the same tests, file by file."""
    files = [
        (file, list(of)) for file, of in groupby(tests, lambda test: test.nodeid.split("::")[0])
    ]
    cost_of = {file: costs.get(file, _UNKNOWN) for file, _ in files}
    files.sort(key=lambda one: (-cost_of[one[0]].wall_s, one[0]))
    waits = [cost.wall_s > WAITS_RATIO * cost.cpu_s for cost in (cost_of[f] for f, _ in files)]
    waiting = [of for (_, of), does in zip(files, waits, strict=True) if does]
    others = [of for (_, of), does in zip(files, waits, strict=True) if not does]
    placed = [(_UNTIL * at / len(waiting), of) for at, of in enumerate(waiting)]
    placed += [(at / len(others), of) for at, of in enumerate(others)]
    return [test for _, of in sorted(placed, key=lambda one: one[0]) for test in of]
