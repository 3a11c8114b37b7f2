"""Playing an episode to its end."""

from collections.abc import Callable
from typing import Any, NamedTuple

import gymnasium
import numpy as np
from numpy.typing import NDArray

from outrider.api import WINDOW_FEATURES, Observation

Pick = Callable[[Observation, int], int]
"""Takes what is seen and how many jobs it shows, and gives a row."""

COLUMN = {name: n for n, name in enumerate(WINDOW_FEATURES)}


class Played(NamedTuple):
    """Result of an episode."""

    seen: list[Observation]
    masks: list[NDArray[np.int8]]
    rewards: list[float]
    begun: dict[str, Any]
    run: dict[str, Any]
    terminated: bool
    truncated: bool


def play(env: gymnasium.Env[Observation, np.int64], pick: Pick, seed: int | None = None) -> Played:
    observation, begun = env.reset(seed=seed)
    seen, masks, rewards = [observation], [begun["mask"]], []
    while True:
        jobs_n = int(masks[-1].sum())
        observation, reward, terminated, truncated, info = env.step(
            np.int64(pick(observation, jobs_n))
        )
        seen.append(observation)
        masks.append(info["mask"])
        rewards.append(float(reward))
        if terminated or truncated:
            return Played(seen, masks, rewards, begun, info["run"], terminated, truncated)


def oldest(seen: Observation, jobs_n: int) -> int:
    return 0


def youngest(seen: Observation, jobs_n: int) -> int:
    return jobs_n - 1


def shortest(seen: Observation, jobs_n: int) -> int:
    return int(seen[:jobs_n, COLUMN["estimate"]].argmin())
