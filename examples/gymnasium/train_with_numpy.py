"""Train a small net for `Outrider-v0` by policy gradients (REINFORCE), with numpy alone.

    python train_with_numpy.py --out net.json
    outrider replay trace.swf --policy window_net --set window_net.weights=net.json

Several episodes run on the same jobs; what one of them got from a decision on, less the mean of
all at that decision, says how good its choices were. Takes a second or two an iteration.
"""

import argparse
from pathlib import Path
from typing import NamedTuple

import gymnasium
import numpy as np

import outrider_lab.gym
from outrider_policies.window_net import Net, fresh_net, write_net


class Steps(NamedTuple):
    """One episode: observation, action and reward of each decision."""

    rows: list[np.ndarray]
    chosen: list[int]
    rewards: list[float]


def run_episode(env: gymnasium.Env, net: Net, seed: int, rng: np.random.Generator) -> Steps:
    """Select jobs at random, with higher probability for higher scores of the net."""
    steps = Steps([], [], [])
    observation, info = env.reset(seed=seed)
    is_over = False
    while not is_over:
        rows = observation[: int(info["mask"].sum())].astype(np.float64)
        scores = net.scores(rows)
        odds = np.exp(scores - scores.max())
        row = int(rng.choice(len(odds), p=odds / odds.sum()))
        observation, reward, terminated, truncated, info = env.step(row)
        is_over = terminated or truncated
        steps.rows.append(rows)
        steps.chosen.append(row)
        steps.rewards.append(float(reward))
    return steps


def advantages(episodes: list[Steps]) -> np.ndarray:
    """Return the advantage of every decision: its return minus the mean of all episodes."""
    longest = max(len(steps.rewards) for steps in episodes)
    to_go = np.zeros((len(episodes), longest))
    for row, steps in zip(to_go, episodes, strict=True):
        row[: len(steps.rewards)] = np.cumsum(steps.rewards[::-1])[::-1]
    to_go -= to_go.mean(axis=0)
    advantages = np.concatenate(
        [row[: len(steps.rewards)] for row, steps in zip(to_go, episodes, strict=True)]
    )
    return advantages / (advantages.std() + 1e-9)


def gradient(net: Net, episodes: list[Steps]) -> list[np.ndarray]:
    """Return the gradient of mean log(probability) x advantage for each layer's parameters."""
    rows = [rows for steps in episodes for rows in steps.rows]
    begins = np.concatenate([[0], np.cumsum([len(one) for one in rows])[:-1]])
    sizes = np.diff(np.append(begins, sum(map(len, rows))))
    values = net.activations(np.concatenate(rows))
    scores = values[-1][:, 0]
    odds = np.exp(scores - np.repeat(np.maximum.reduceat(scores, begins), sizes))
    odds /= np.repeat(np.add.reduceat(odds, begins), sizes)
    back = -odds
    back[begins + [row for steps in episodes for row in steps.chosen]] += 1.0
    back = (back * np.repeat(advantages(episodes), sizes) / len(begins))[:, np.newaxis]
    found: list[np.ndarray] = []
    for layer, given in zip(net.layers[::-1], values[-2::-1], strict=True):
        found = [given.T @ back, back.sum(axis=0), *found]
        back = (back @ layer.weights.T) * (1.0 - given**2)  # of tanh; of the features unused
    return found


def train(
    env: gymnasium.Env, net: Net, iterations: int, seed: int, episodes_n: int = 8,
    rate: float = 0.01,
) -> list[float]:  # fmt: skip
    """Improve a net in place with Adam; return the mean return of each iteration."""
    rng = np.random.default_rng(seed)
    parameters = [part for layer in net.layers for part in layer]
    first = [np.zeros_like(part) for part in parameters]
    second = [np.zeros_like(part) for part in parameters]
    returns = []
    for n in range(1, iterations + 1):
        jobs = int(rng.integers(2**31))  # the same jobs for all episodes of an iteration
        episodes = [run_episode(env, net, jobs, rng) for _ in range(episodes_n)]
        for part, m, v, step in zip(
            parameters, first, second, gradient(net, episodes), strict=True
        ):
            m[...] += 0.1 * (step - m)
            v[...] += 0.001 * (step**2 - v)
            part[...] += rate * (m / (1 - 0.9**n)) / (np.sqrt(v / (1 - 0.999**n)) + 1e-8)
        returns.append(float(np.mean([sum(steps.rewards) for steps in episodes])))
    return returns


def main() -> None:
    """Train on small generated grids, and write the net."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True, help="file of the net")
    parser.add_argument("--iterations", type=int, default=100)
    parser.add_argument("--episodes", type=int, default=8, help="of each iteration")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--reward", default="bounded_slowdown", choices=outrider_lab.gym.REWARDS)
    parser.add_argument("--window", type=int, default=32)
    options = parser.parse_args()
    env = gymnasium.make(outrider_lab.gym.ENV_ID, reward=options.reward, window=options.window)
    net = fresh_net(options.window, (16, 8), np.random.default_rng(options.seed))
    returns = train(env, net, options.iterations, options.seed, options.episodes)
    settings = {name: value for name, value in vars(options).items() if name != "out"}
    write_net(net, options.out, {**settings, "returns": [round(one, 4) for one in returns]})
    print(f"{options.out}: mean return of the last ten iterations {np.mean(returns[-10:]):.4g}")


if __name__ == "__main__":
    main()
