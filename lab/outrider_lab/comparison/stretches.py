"""Stretches of a trace's time, for each pair of policies as long as their queues remember."""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider_lab.reporting.block_length import block_of_waits
from outrider_lab.reporting.bootstrap import Blocks, blocks_of_time

Floats = NDArray[np.float64]
_NO_JOBS: Final = 1.0


class Stretches:
    """Which jobs are drawn together where two policies are compared.

    Args:
        submit_s: shape (jobs,).
        wait_s: shape (jobs, policies), of the same jobs.
        block_s: seconds, as somebody chose; None: chosen from the waits.
    """

    def __init__(self, submit_s: Floats, wait_s: Floats, block_s: float | None = None) -> None:
        self._submit_s = submit_s
        self._wait_s = wait_s
        self._given_s = block_s
        self._chosen_s: dict[int, float] = {}

    def block_s(self, one: int, other: int) -> float:
        """Seconds of a stretch for two policies, by column: the longer of what each needs.

        Never below the mean wait under either, whoever chose.
        """
        return max(self._needed_s(one), self._needed_s(other))

    def blocks(self, one: int, other: int) -> Blocks:
        """The stretch of each job, from 0 on without gaps."""
        return blocks_of_time(self._submit_s, self.block_s(one, other))

    def _needed_s(self, policy: int) -> float:
        if policy not in self._chosen_s:
            waits = self._wait_s[:, policy]
            if not len(waits):
                needed = _NO_JOBS
            elif self._given_s is None:
                needed = block_of_waits(self._submit_s, waits)
            else:
                needed = max(self._given_s, float(waits.mean()))
            self._chosen_s[policy] = needed
        return self._chosen_s[policy]
