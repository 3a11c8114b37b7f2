"""Starts on record: the possible choices, the choice made, and the end of the run."""

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

TOGETHER_S: Final = 60.0
"""Maximal time between successive jobs of one batch of a user, seconds."""


class Start(msgspec.Struct, gc=False):
    """One start by the incumbent, with the state just before it.

    Attributes:
        day_s: Unix time of the local midnight before it.
        hour: local hour of the day, 0 to 23.
        batch: number of the batch of its job.
        group: number of the group of its machine.
        free_n: by group, the machines on which the job could have started.
        chances: by candidate that would start the job: the probability with which it chooses this
            machine, and that with which it chooses a machine of each group.
        completed: whether the run completed; None while it continues.
    """

    day_s: int
    hour: int
    batch: int
    group: int
    free_n: Mapping[int, int]
    chances: Mapping[str, tuple[float, Mapping[int, float]]]
    completed: bool | None = None


class Batches:
    """Numbering of batches of jobs: those of one user that are submitted together."""

    def __init__(self) -> None:
        self._latest: dict[str, tuple[float, int]] = {}
        self._of_job: dict[int, int] = {}
        self._n = 0

    def submit(self, job: int, user: str, time_s: float) -> None:
        """Record a submission; times must not decrease."""
        last_s, batch = self._latest.get(user, (time_s - 2.0 * TOGETHER_S, 0))
        if time_s - last_s > TOGETHER_S:
            batch, self._n = self._n, self._n + 1
        self._latest[user] = time_s, batch
        self._of_job[job] = batch

    def of(self, job: int) -> int:
        """Return the batch of a job."""
        return self._of_job[job]


class StartTable:
    """Table of the starts whose runs ended and which one candidate would make, too.

    Args:
        starts: in any order.
        groups_n: number of machine groups.
        policy: name of the candidate.

    Attributes:
        completed: (starts,) 1 where the run completed, 0 where it was evicted or killed.
        day, hour, batch, group: (starts,) as in `Start`; days are numbered from 0.
        by_chance, by_policy: (starts, groups) the probability of each group if a machine is drawn
            uniformly, and if the candidate chooses.
        weights: (starts,) probability of the machine under the candidate, over that if drawn.
    """

    def __init__(self, starts: Sequence[Start], groups_n: int, policy: str) -> None:
        ended = [start for start in starts if start.completed is not None]
        self._starts = [start for start in ended if policy in start.chances]
        self.groups_n = groups_n
        self.completed: Floats = np.array([bool(s.completed) for s in self._starts], dtype=float)
        days = np.array([s.day_s for s in self._starts], dtype=np.int64)
        self.day: Ints = np.unique(days, return_inverse=True)[1].astype(np.int64)
        self.hour: Ints = np.array([s.hour for s in self._starts], dtype=np.int64)
        self.batch: Ints = np.array([s.batch for s in self._starts], dtype=np.int64)
        self.group: Ints = np.array([s.group for s in self._starts], dtype=np.int64)
        self.by_chance = self._dense([s.free_n for s in self._starts])
        free_n = self.by_chance.sum(axis=1)
        self.by_chance /= free_n[:, None]
        chances = [s.chances[policy] for s in self._starts]
        own: Floats = np.array([of_machine for of_machine, _ in chances], dtype=float)
        self.weights: Floats = own * free_n
        self.by_policy = self._dense([by_group for _, by_group in chances])

    def __len__(self) -> int:
        return len(self._starts)

    def _dense(self, rows: Sequence[Mapping[int, float]]) -> Floats:
        out = np.zeros((len(rows), self.groups_n))
        for at, row in enumerate(rows):
            for group, value in row.items():
                out[at, group] = value
        return out
