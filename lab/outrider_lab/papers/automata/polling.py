"""Users and polls: one user is asked at a time, and only the asked one can submit.

Not on the engine, which hears of every job at once: here a poll is what costs.
"""

from collections import deque
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from outrider_lab.papers.automata.grid import BURSTY, COME_AND_GO, TURNS
from outrider_lab.running.run_spec import RunSpec
from outrider_lab.running.traces import DrawnWorkload

LOAD_RATIO: Final = 0.6
"""Jobs that all users together get ready between two polls."""
USERS: Final = 20
_LEAVING: Final = 5
"""Users who go half way and are replaced by new ones, where they come and go."""
_ON, _OFF = 200.0, 600.0
"""Mean polls that a bursty user is busy, and idle."""
FORGET: Final = 2000.0
"""Polls without a job after which a user is asked no more."""


class Poller(Protocol):
    """Interface of the object that decides which user is polled."""

    def poll(self, ready_n: Mapping[str, int], now: float) -> str | None:
        """Poll one user; return the user if a job was ready, else None."""
        ...


class Turns:
    """Round robin over the users that have had a job and were not forgotten."""

    def __init__(self) -> None:
        self._line: deque[str] = deque()
        self._seen: dict[str, float] = {}

    def poll(self, ready_n: Mapping[str, int], now: float) -> str | None:
        """Ask the next in turn."""
        self._line.extend(user for user in ready_n if user not in self._seen)
        self._seen.update(dict.fromkeys(ready_n, now))
        while self._line:
            user = self._line.popleft()
            if now - self._seen[user] > FORGET:
                del self._seen[user]
                continue
            self._line.append(user)
            return user if user in ready_n else None
        return None


class _User(NamedTuple):
    """Jobs get ready at `rate` a poll, from poll `begin` until `end`."""

    name: str
    rate: float
    begin: int
    end: int


def play_polls(spec: RunSpec) -> dict[str, Any]:
    """Run the polling experiment; times are counted in polls.

    Returns:
        `wait` (from ready until taken, mean over the jobs; those never taken until the end),
        `wait_p95`, `starvation` (the longest that a user with a job ready was not asked),
        `empty_ratio` (polls that found nobody, of those made while somebody waited),
        `heavy_wait_ratio` (mean wait of the busiest quarter of users over that of the others).
    """
    arrivals, busiest = _arrivals(spec.drawn)
    waits, poller, whole = _Waits(busiest), _poller(spec), spec.option("poll") == "backlog"
    ready: dict[str, deque[int]] = {}
    for now, users in enumerate(arrivals):
        for user in users:
            ready.setdefault(user, deque()).append(now)
            waits.ready(user, now)
        asked = poller.poll({name: len(jobs) for name, jobs in ready.items()}, float(now))
        if ready:
            waits.polled(asked, now)
        if asked is None:
            continue
        jobs = ready[asked]
        for _ in range(len(jobs) if whole else 1):
            waits.taken(asked, now - jobs.popleft())
        if jobs:
            waits.ready(asked, now)
        else:
            del ready[asked]
    for user, jobs in ready.items():
        waits.left(user, jobs, len(arrivals))
    return waits.figures()


def _poller(spec: RunSpec) -> Poller:
    if spec.policy.policy == TURNS:
        return Turns()
    return cast(Poller, spec.make_policy())


def _arrivals(drawn: DrawnWorkload) -> tuple[list[list[str]], set[str]]:
    """Return users whose jobs get ready before each poll, and the busiest quarter of them.

    Rates fall as 1 / rank. A bursty user's jobs come in its busy stretches only, at four times
    the rate. The same for every poller of a seed.
    """
    polls, pattern = drawn.option("polls"), drawn.option("pattern")
    rng = np.random.default_rng(np.random.SeedSequence([drawn.seed, 7]))
    weights = rng.permutation(1.0 / np.arange(1, USERS + 1))
    rates = LOAD_RATIO * weights / weights.sum()
    half = polls // 2 if pattern == COME_AND_GO else polls
    users = [
        _User(f"user-{n}", rate, 0, half if n < _LEAVING else polls)
        for n, rate in enumerate(rates.tolist())
    ]
    if pattern == COME_AND_GO:
        users += [
            _User(f"new-{n}", user.rate, half, polls) for n, user in enumerate(users[:_LEAVING])
        ]
    out: list[list[str]] = [[] for _ in range(polls)]
    for user in users:
        busy = _busy(rng, polls) if pattern == BURSTY else np.ones(polls)
        ready_n = rng.poisson(user.rate * busy)
        for poll in np.flatnonzero(ready_n[user.begin : user.end]) + user.begin:
            out[poll] += [user.name] * int(ready_n[poll])
    threshold = np.sort(rates)[-USERS // 4]
    return out, {user.name for user in users if user.rate >= threshold}


def _busy(rng: np.random.Generator, polls: int) -> NDArray[np.float64]:
    """Return the factor on a bursty user's rate before each poll: 4 or 0, 1 in the mean."""
    out, at = np.zeros(polls), 0
    on = bool(rng.random() < _ON / (_ON + _OFF))
    while at < polls:
        length = 1 + int(rng.exponential(_ON if on else _OFF))
        out[at : at + length] = (_ON + _OFF) / _ON if on else 0.0
        at, on = at + length, not on
    return out


class _Waits:
    """Counts of waits and polls while users are polled."""

    def __init__(self, busiest: set[str]) -> None:
        self._busiest = busiest
        self._heavy: list[int] = []
        self._light: list[int] = []
        self._unasked_since: dict[str, int] = {}
        self._starvation = 0
        self._polls = 0
        self._empty = 0

    def ready(self, user: str, now: int) -> None:
        """Note that the user waits to be polled from now on, if not before."""
        self._unasked_since.setdefault(user, now)

    def polled(self, user: str | None, now: int) -> None:
        """Count a poll that was made while some user had a job."""
        self._polls += 1
        if user is None:
            self._empty += 1
        else:
            self._starvation = max(self._starvation, now - self._unasked_since.pop(user))

    def taken(self, user: str, wait: int) -> None:
        """Count a job that was taken."""
        (self._heavy if user in self._busiest else self._light).append(wait)

    def left(self, user: str, jobs: Iterable[int], end: int) -> None:
        """Count jobs that were never taken."""
        for ready_at in jobs:
            self.taken(user, end - ready_at)
        self._starvation = max(self._starvation, end - self._unasked_since[user])

    def figures(self) -> dict[str, Any]:
        """Return the figures of `play_polls`."""
        waits = np.array(self._heavy + self._light, dtype=float)
        light = np.mean(self._light)
        return {
            "wait": float(waits.mean()),
            "wait_p95": float(np.percentile(waits, 95)),
            "starvation": float(self._starvation),
            "empty_ratio": self._empty / self._polls,
            "heavy_wait_ratio": float(np.mean(self._heavy) / light) if light else float("nan"),
        }
