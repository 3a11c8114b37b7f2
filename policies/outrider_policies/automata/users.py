"""The automaton over users: which user is polled next for a ready job."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

from outrider_policies.automata.automaton import Automaton, scheme
from outrider_policies.automata.settings import AutomataSettings

_MOST_POLLS: Final = 32
"""Polls without a job after which only users with jobs are polled, to bound the time spent."""


class Users:
    """Polls users one by one (LAJS, section 3.1.1; two-way, section 4.1.1).

    A user who has a job ready is rewarded and one who has none is penalised, so the automaton
    learns to poll users with jobs. Users are added with their first job and removed when they
    have had none for `forget_user_s`.
    """

    def __init__(self, settings: AutomataSettings) -> None:
        learning_scheme = scheme(settings.scheme, settings.reward_step, settings.penalty_step)
        self.automaton = Automaton(learning_scheme)
        self._by_jobs = settings.user_reward == "jobs"
        self._floor_ratio = settings.floor_ratio
        self._forget_s = settings.forget_user_s
        self._seen_s: dict[str, float] = {}

    def note_users(self, users: Iterable[str], now: float) -> None:
        """Add users who have jobs now; remove those without a job for `forget_user_s`."""
        for user in users:
            if self._seen_s.pop(user, None) is None:
                self.automaton.add(user)
            self._seen_s[user] = now  # insertion order: the last was seen last
        while self._seen_s:
            oldest = next(iter(self._seen_s))
            if now - self._seen_s[oldest] <= self._forget_s:
                return
            del self._seen_s[oldest]
            self.automaton.remove(oldest)

    def poll(self, waiting_n: Mapping[str, int], rng: random.Random) -> str | None:
        """Poll one user, drawn by the automaton, and learn from the response.

        Args:
            waiting_n: number of ready jobs by user; others have none.
            rng: for the draw.

        Returns:
            the user, or None if the polled user has no job or no user is known.
        """
        if not len(self.automaton):
            return None
        at = self.automaton.draw(rng, self._floor_ratio)
        user = str(self.automaton.actions[at])
        ready_n = waiting_n.get(user, 0)
        if not ready_n:
            self.automaton.penalise(at)
            return None
        self.automaton.reward(at, times=ready_n if self._by_jobs else 1)
        return user

    def next_with_jobs(self, waiting_n: Mapping[str, int], rng: random.Random) -> str:
        """Poll until a user has a job. Users in `waiting_n` must be known and have jobs."""
        for _ in range(_MOST_POLLS):
            user = self.poll(waiting_n, rng)
            if user is not None:
                return user
        among = self.automaton.positions(waiting_n)
        return str(self.automaton.actions[self.automaton.draw(rng, self._floor_ratio, among)])

    def chance(self, user: str) -> float:
        """The probability that a poll asks this user; 0 if unknown."""
        if user not in self.automaton:
            return 0.0
        return float(self.automaton.chances(self._floor_ratio)[self.automaton.position(user)])

    def save(self) -> dict[str, Any]:
        """Probabilities, and when each user last had a job."""
        return {"automaton": self.automaton.save(), "seen_s": list(self._seen_s.items())}

    def restore(self, saved: dict[str, Any]) -> None:
        """Go on from what `save` gave."""
        self.automaton.restore(saved["automaton"])
        self._seen_s = dict(saved["seen_s"])
