"""The policy through which an agent decides: it asks, and waits for the answer."""

import random
from collections.abc import Callable
from typing import NamedTuple

from outrider.api import Job, Observation, PolicySettings, WindowPolicy

NAME = "agent"


class Question(NamedTuple):
    """Which job is tried next.

    Attributes:
        observation: of the window.
        jobs_n: rows that hold a job; 2 or more.
    """

    observation: Observation
    jobs_n: int


class AgentPolicy(WindowPolicy[PolicySettings]):
    """Asks an agent outside which job is tried next; everything else is `WindowPolicy`."""

    name = NAME
    description = "an agent outside selects the next job among the oldest that wait"
    api_version = 1

    def __init__(self, rng: random.Random, window: int, ask: Callable[[Question], int]) -> None:
        super().__init__(PolicySettings(), rng, window)
        self._ask = ask
        self.wants_scores = False

    def select(self, jobs: list[Job], observation: Observation) -> int:
        """What the agent answers."""
        return self._ask(Question(observation, len(jobs)))
