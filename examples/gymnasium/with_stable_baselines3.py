"""Train with PPO of stable-baselines3, and run the model as a policy of Outrider.

    pip install 'outrider[gym]' stable-baselines3
    python with_stable_baselines3.py

It brings torch, which is gigabytes, so no test runs this file. A slot without a job means the
oldest job, so PPO needs no mask; MaskablePPO of sb3-contrib takes `info["mask"]` as its own.
"""

import random
from pathlib import Path

import gymnasium
from stable_baselines3 import PPO

import outrider
import outrider_lab.gym
from outrider.api import Job, Observation, PolicySettings, WindowPolicy

WINDOW = 32
MODEL = Path("ppo.zip")


class PpoPolicy(WindowPolicy[PolicySettings]):
    """Policy in which the trained model selects; the rest is as in the environment."""

    name = "ppo"
    description = "a model of stable-baselines3 selects the next job"
    api_version = 1

    def __init__(self, settings: PolicySettings, rng: random.Random) -> None:
        super().__init__(settings, rng, WINDOW)
        self._model = PPO.load(MODEL)

    def select(self, jobs: list[Job], observation: Observation) -> int:
        """Return the most probable row; one without a job means the oldest."""
        row, _ = self._model.predict(observation, deterministic=True)
        return int(row)


def main() -> None:
    """Train, save, and compare with fifo and sjf on a grid not used for training."""
    env = gymnasium.make(outrider_lab.gym.ENV_ID, window=WINDOW)
    model = PPO("MlpPolicy", env, seed=0, verbose=1)
    model.learn(200_000)
    model.save(MODEL)
    trace = outrider.generate_grid(1, row=0.4, jobs=300, machines=10)
    for policy in ("fifo", "sjf", PpoPolicy):
        run = outrider.replay(trace, policy, estimates="lognormal:0.5")
        print(run.policy, run.bounded_slowdown["all"]["mean"])


if __name__ == "__main__":
    main()
