"""Run times of jobs of which the record does not tell: they were still there when it ended."""

from collections.abc import Iterable, Sequence
from math import nan
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.replay.site_record import RecordedJob

Floats = NDArray[np.float64]

ENOUGH_OF_USER: Final = 5
"""With so many resolved jobs of its own user a job is drawn from them alone."""


class Pending:
    """Draws the run times of pending jobs, given the hours that each has run in one go.

    Two risks compete: a job completes after its run time, or it never ends by itself and somebody
    kills it. So a job whose longest run lasted L is drawn from the resolved jobs that ran longer
    than L in one go: one that completed gives its run time, one that was killed gives "never". So
    does a job that ran longer than all of them.

    Args:
        jobs: of the campus, in its order.

    Attributes:
        at: (pending,) their positions.
    """

    def __init__(self, jobs: Sequence[RecordedJob]) -> None:
        completed = np.array([not np.isnan(job.run_s) for job in jobs], dtype=bool)
        killed = np.array([not np.isnan(job.kill_s) for job in jobs], dtype=bool)
        self.at: NDArray[np.intp] = np.flatnonzero(~completed & ~killed)
        by_user: dict[str, list[RecordedJob]] = {}
        for n in np.flatnonzero(completed | killed).tolist():
            by_user.setdefault(jobs[n].spec.user, []).append(jobs[n])
        everybody = _Lengths(job for of_user in by_user.values() for job in of_user)
        users = {user: _Lengths(of_user) for user, of_user in by_user.items()}
        self._choices: list[Floats] = []
        for n in self.at.tolist():
            job = jobs[n]
            own = users.get(job.spec.user, everybody).longer_than(job.longest_s)
            enough = len(own) >= ENOUGH_OF_USER
            choices = own if enough else everybody.longer_than(job.longest_s)
            self._choices.append(choices if len(choices) else np.array([nan]))

    def draw(self, rng: np.random.Generator) -> Floats:
        """(pending,) seconds; nan: it never ends by itself."""
        return np.array([rng.choice(choices) for choices in self._choices], dtype=np.float64)


class _Lengths:
    """Resolved jobs by how long they ran in one go."""

    def __init__(self, jobs: Iterable[RecordedJob]) -> None:
        rows = [
            (job.longest_s, nan) if np.isnan(job.run_s) else (job.run_s, job.run_s) for job in jobs
        ]
        ordered = np.array(sorted(rows, key=lambda row: row[0]), dtype=np.float64).reshape(-1, 2)
        self._went_s, self._run_s = ordered.T

    def longer_than(self, seconds: float) -> Floats:
        """Run times of those that ran longer; nan for those that never ended."""
        return self._run_s[np.searchsorted(self._went_s, seconds, side="right") :]
