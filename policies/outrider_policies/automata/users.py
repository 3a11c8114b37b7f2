"""The automaton over users: who is asked next whether a job is ready."""

import random
from collections.abc import Iterable, Mapping
from typing import Any, Final

from outrider_policies.automata.automaton import Automaton, scheme
from outrider_policies.automata.settings import AutomataSettings

_MOST_POLLS: Final = 32
"""Polls in vain, after which only users who have jobs are asked: a scheduler has other work."""


class Users:
    """Polls users one by one (LAJS, section 3.1.1; two-way, section 4.1.1).

    A user who has a job ready is rewarded and one who has none is penalised, so the automaton
    comes to ask those who have something to say. Users get in with their first job and go when
    they have had none for `forget_user_s`.
    """

    def __init__(self, settings: AutomataSettings) -> None:
        its_scheme = scheme(settings.scheme, settings.reward_step, settings.penalty_step)
        self.automaton = Automaton(its_scheme)
        self._by_jobs = settings.user_reward == "jobs"
        self._floor_ratio = settings.floor_ratio
        self._forget_s = settings.forget_user_s
        self._seen_s: dict[str, float] = {}

    def meet(self, users: Iterable[str], now: float) -> None:
        """These have jobs now; who has had none for long is forgotten."""
        for user in users:
            if self._seen_s.pop(user, None) is None:
                self.automaton.add(user)
            self._seen_s[user] = now  # the last in line is the one seen last
        while self._seen_s:
            longest = next(iter(self._seen_s))
            if now - self._seen_s[longest] <= self._forget_s:
                return
            del self._seen_s[longest]
            self.automaton.remove(longest)

    def poll(self, waiting_n: Mapping[str, int], rng: random.Random) -> str | None:
        """Ask one user, drawn by the automaton, and learn from the answer.

        Args:
            waiting_n: jobs that users have ready; who is not in it has none.
            rng: chance.

        Returns:
            the user, or None if the one who was asked has no job, or nobody is known.
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
        """Poll until somebody has a job. Who is in `waiting_n` was met and has at least one."""
        for _ in range(_MOST_POLLS):
            user = self.poll(waiting_n, rng)
            if user is not None:
                return user
        among = self.automaton.positions(waiting_n)
        return str(self.automaton.actions[self.automaton.draw(rng, self._floor_ratio, among)])

    def chance(self, user: str) -> float:
        """The share of polls that ask a user; 0 for one never met."""
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
