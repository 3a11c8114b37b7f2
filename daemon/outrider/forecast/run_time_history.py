"""Run times of jobs that have ended, by who asked for what: from these the others' are drawn."""

from collections.abc import Hashable
from math import isnan, log2
from typing import Final

import numpy as np

from outrider.forecast.queue_state import Floats, Ints

GROUP_LEVELS: Final = 5
"""User with request and size; user with request; user; class of request; everybody."""
KEPT: Final = 256
"""Run times kept of a group: the last."""
MOST_GROUPS: Final = 1 << 16
"""With so many groups (134 MB), a new one is not kept apart: the next wider one stands for it."""
_OVERRUNS_KEPT: Final = 1000
_OVERRUN_RATIO: Final = 0.02


class RunTimeHistory:
    """The last run times of each group of alike jobs, on five levels.

    Attributes:
        values_s: (groups, KEPT) run times; the newest of a group is at ``(total - 1) % KEPT``.
        totals: (groups,) run times that each group ever had.
    """

    def __init__(self) -> None:
        self.values_s: Floats = np.empty((64, KEPT))
        self.totals: Ints = np.zeros(64, np.int64)
        self._numbers: dict[Hashable, int] = {}
        self._over: Floats = np.zeros(_OVERRUNS_KEPT)
        self._requests_n = 0

    def groups_of(self, user: str, request_s: float, job_class: str, cpus: int) -> list[int]:
        """(levels,) The groups that a job belongs to, the narrowest first.

        Args:
            user: who asks.
            request_s: run time asked for, seconds; nan: none.
            job_class: what else is declared of its length, as a queue.
            cpus: CPUs asked for.
        """
        asked: tuple[Hashable, ...] = (None if isnan(request_s) else request_s, job_class)
        kind = (None if isnan(request_s) else round(2.0 * log2(max(1.0, request_s))), job_class)
        keys: list[Hashable] = [
            (0, user, asked, cpus), (1, user, asked), (2, user), (3, kind), (4,)
        ]  # fmt: skip
        if len(self._numbers) + GROUP_LEVELS <= MOST_GROUPS:
            return [self._number(key) for key in keys]
        groups = [0]
        for key in reversed(keys):
            groups.append(self._numbers.get(key, groups[-1]))
        return groups[:0:-1]

    def _number(self, key: Hashable) -> int:
        number = self._numbers.setdefault(key, len(self._numbers))
        if number == len(self.totals):
            self.values_s = np.concatenate([self.values_s, np.empty_like(self.values_s)])
            self.totals = np.concatenate([self.totals, np.zeros_like(self.totals)])
        return number

    def add(self, groups: Ints, run_s: float, request_s: float) -> None:
        """A job has ended.

        Args:
            groups: (levels,) of `groups_of`.
            run_s: how long it ran, seconds.
            request_s: how long it had asked for, seconds; nan: not said.
        """
        self.values_s[groups, self.totals[groups] % KEPT] = run_s
        self.totals[groups] += 1
        if not isnan(request_s):
            over = run_s > 1.1 * request_s + 300.0
            self._over[self._requests_n % _OVERRUNS_KEPT] = over
            self._requests_n += 1

    @property
    def kills_at_request(self) -> bool:
        """Whether jobs end at the time they asked for, as far as was seen: few ever ran longer."""
        n = min(self._requests_n, _OVERRUNS_KEPT)
        return n > 0 and float(self._over[:n].mean()) <= _OVERRUN_RATIO
