"""How long a machine that is closed to jobs now will stay so, by how long it was before."""

from collections.abc import Iterable
from functools import cached_property
from typing import Final

import numpy as np

from outrider.forecast.queue_state import Floats
from outrider.forecast.recent_closures import Closure

ENOUGH: Final = 5
"""With so many closures that lasted longer, a machine's own tell how long this one will."""
_ANY: Final = -1
_SHORTEST_S: Final = 60.0


class ClosureLengths:
    """Draws lengths of closures that go on.

    Args:
        closures: those that have ended.
    """

    def __init__(self, closures: Iterable[Closure]) -> None:
        self._closures = closures

    def draw_s(self, machine: int, reason: str, gone_s: float, chance: float) -> float:
        """The whole length of a closure that has lasted for `gone_s`, seconds.

        As long as one of the machine's closures for the same reason that lasted longer; where it
        has few, as one of any machine.

        Args:
            machine: its number.
            reason: why it is closed.
            gone_s: for how long it has been.
            chance: in [0, 1); picks one.
        """
        for whose, enough in ((machine, ENOUGH), (_ANY, 1)):
            lengths_s = self._lengths_s.get((whose, reason))
            if lengths_s is not None:
                first = int(np.searchsorted(lengths_s, gone_s, "right"))
                longer = len(lengths_s) - first
                if longer >= enough:
                    return float(lengths_s[first + int(chance * longer)])
        # none lasted for so long: as much again is as likely as not
        return max(gone_s, _SHORTEST_S) / max(chance, 0.01)

    @cached_property
    def _lengths_s(self) -> dict[tuple[int, str], Floats]:
        """Ascending lengths of closures by machine and reason, `_ANY` for all machines."""
        lengths: dict[tuple[int, str], list[float]] = {}
        for closure in self._closures:
            for whose in (closure.machine, _ANY):
                length_s = closure.until_s - closure.from_s
                lengths.setdefault((whose, closure.reason), []).append(length_s)
        return {key: np.sort(np.array(values)) for key, values in lengths.items()}
