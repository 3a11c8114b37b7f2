"""Hazard of users' kills while jobs wait, compared with that while they run.

A twin kills every job when its user did. If users lose patience while a job waits, a policy that
lets jobs wait less would have kept some that were killed, and one that defers would lose more. A
comparison of the incumbent with itself cannot show that. So the hazard of a kill while waiting,
over that while running, is estimated from the record: Cox's partial likelihood, with the job's age
as time and whether it waits as the covariate (Cox 1972, "Regression models and life-tables"). Users
kill many jobs together, so the error is that between such batches of kills, not between jobs (Lin
and Wei 1989, "The robust inference for the Cox proportional hazards model").
"""

from collections.abc import Iterable, Iterator, Sequence
from math import exp, sqrt
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.model import events as ev
from outrider.model.events import Event
from outrider.replay.site_record import RecordedJob

Floats = NDArray[np.float64]

MIN_BATCHES: Final = 30
"""Minimal number of batches of kills for an estimate of the ratio of hazards."""
_BATCH_S: Final = 60.0
"""Kills by one user within this period are one batch, seconds."""
_SURE_Z: Final = 2.5758293035489004
"""Standard errors from 0 (99 %) beyond which the estimate counts as a difference."""
_LARGEST: Final = 5.0


class KillClock(NamedTuple):
    """Speed of the clock of users' patience while jobs wait, relative to while they run.

    Attributes:
        log_hazard_ratio: logarithm of the hazard while waiting over that while running.
        error: its standard error.
        kills: number of kills that it rests on.
        batches: number of batches, each of kills by one user together.
    """

    log_hazard_ratio: float
    error: float
    kills: int
    batches: int

    @property
    def is_uneven(self) -> bool:
        """True if waiting makes a significant difference."""
        return abs(self.log_hazard_ratio) > _SURE_Z * self.error

    def to_json(self) -> dict[str, float | int | bool]:
        """Return the object of ``outrider twin --json``."""
        return self._asdict() | {"is_uneven": self.is_uneven}

    def patience_s(self, waited_s: Floats, ran_s: Floats) -> Floats:
        """Return seconds on the clock: those of running, and those of waiting at its own rate."""
        return np.asarray(ran_s + exp(self.log_hazard_ratio) * waited_s, dtype=np.float64)


class History(NamedTuple):
    """Changes of state of a job that did not complete, by its age.

    Attributes:
        changes_s: ages at which it started, was evicted, started, and so on, seconds.
        age_s: when it was killed, or seen last.
        batch: number of the batch of kills that it was killed in; None: it was not killed.
    """

    changes_s: list[float]
    age_s: float
    batch: int | None


class KillsSeen:
    """Collects when jobs that did not complete waited, ran and were killed."""

    def __init__(self) -> None:
        self._came: dict[int, tuple[float, str]] = {}
        self._changes_s: dict[int, list[float]] = {}
        self._ended: list[History] = []
        self._batches: dict[tuple[str, int], int] = {}

    def watch(self, events: Iterable[Event]) -> Iterator[Event]:
        """Yield the events unchanged, and count them."""
        for event in events:
            time_s, kind, job, extra = event
            if kind == ev.SUBMITTED:
                self._came[job], self._changes_s[job] = (time_s, extra.user), []
            elif job in self._came and kind in (ev.STARTED, ev.EVICTED):
                self._changes_s[job].append(time_s - self._came[job][0])
            elif job in self._came and kind in (ev.COMPLETED, ev.REMOVED):
                (came_s, user), changes_s = self._came.pop(job), self._changes_s.pop(job)
                if kind == ev.REMOVED:
                    key = user, int(time_s // _BATCH_S)
                    batch = self._batches.setdefault(key, len(self._batches))
                    self._ended.append(History(changes_s, time_s - came_s, batch))
            yield event

    def fit(self, end_s: float) -> KillClock | None:
        """Estimate the clock; return None if too few kills are on record.

        Args:
            end_s: when the record ends.
        """
        still_there = [
            History(changes_s, end_s - self._came[job][0], None)
            for job, changes_s in self._changes_s.items()
        ]
        return _fit(_kills([*self._ended, *still_there]))


class _Kills(NamedTuple):
    """Kills at whose age some jobs waited and others ran; other kills have no information.

    Attributes:
        share: (kills,) share of the jobs of that age that waited.
        waited: (kills,) whether the killed job waited.
        batch: (kills,) number of the batch.
    """

    share: Floats
    waited: NDArray[np.bool_]
    batch: NDArray[np.intp]


def _kills(histories: Sequence[History]) -> _Kills:
    """Go through all ages; for each kill count the jobs of that age that waited."""
    steps: list[tuple[float, int, int, int, int]] = []
    for changes_s, age_s, batch in histories:
        steps.append((0.0, 0, 1, 1, 0))
        steps.extend((at_s, 1, 0, 1 if n % 2 else -1, 0) for n, at_s in enumerate(changes_s))
        waits = len(changes_s) % 2 == 0
        steps.append((age_s, 3 if batch is None else 2, -1, -int(waits), batch or 0))
    steps.sort()
    at_risk = waiting = 0
    found: list[tuple[float, bool, int]] = []
    for _, order, risk, change, batch in steps:
        if order == 2 and 0 < waiting < at_risk:
            found.append((waiting / at_risk, change < 0, batch))
        at_risk, waiting = at_risk + risk, waiting + change
    share, waited, batches = zip(*found, strict=True) if found else ((), (), ())
    return _Kills(
        np.array(share, dtype=np.float64), np.array(waited, dtype=bool),
        np.array(batches, dtype=np.intp),
    )  # fmt: skip


def _fit(kills: _Kills) -> KillClock | None:
    """Maximise the partial likelihood, by bisection of its slope, which is decreasing."""
    batches = len(np.unique(kills.batch))
    if batches < MIN_BATCHES or kills.waited.all() or not kills.waited.any():
        return None

    def expected(beta: float) -> Floats:
        odds = exp(beta) * kills.share
        return np.asarray(odds / (odds + 1.0 - kills.share), dtype=np.float64)

    low, high = -_LARGEST, _LARGEST
    for _ in range(60):
        middle = (low + high) / 2.0
        rises = expected(middle).sum() < kills.waited.sum()
        low, high = (middle, high) if rises else (low, middle)
    chance = expected(low)
    information = float((chance * (1.0 - chance)).sum())
    by_batch = np.bincount(kills.batch, weights=kills.waited - chance)
    error = sqrt(float((by_batch**2).sum()) * batches / (batches - 1)) / information
    return KillClock(low, error, len(kills.share), batches)


def kills_by_clock(
    clock: KillClock, jobs: Sequence[RecordedJob], submit_s: Floats, kill_s: Floats,
    ran_s: Floats,
) -> Floats:  # fmt: skip
    """Return when users would have killed jobs that waited and ran differently than on record.

    A kill comes when the clock shows what it showed when the job really was killed. The share of
    its age that a job waits is taken to be that of the simulated run.

    Args:
        clock: of the record.
        jobs: as recorded.
        submit_s: (jobs,) when they came, seconds of the campus.
        kill_s: (jobs,) when they were killed there; nan: never.
        ran_s: (jobs,) seconds that each ran in a simulated run until then.

    Returns:
        (jobs,) seconds of the campus; nan: never.
    """
    age_s = kill_s - submit_s
    seen_ran_s = np.array([job.ran_s for job in jobs], dtype=np.float64)
    seen = clock.patience_s(np.maximum(0.0, age_s - seen_ran_s), seen_ran_s)
    simulated = clock.patience_s(np.maximum(0.0, age_s - ran_s), ran_s)
    ratio = np.divide(seen, simulated, out=np.ones_like(seen), where=simulated > 0.0)
    return np.asarray(submit_s + age_s * ratio, dtype=np.float64)
