"""Comparison of a trained net with published rules, on workloads not used for training.

    python figures.py --net net.json

Mean bounded slowdown over seeds below 10,000, with a 95 % interval of the mean (Student's t), and
of the difference from fifo on the same jobs. Estimates are wrong by a log-normal factor.
"""

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy.stats import t as student_t

import outrider
from outrider.formats.workload import Workload

ESTIMATES = "lognormal:0.5"
RULES = ("fifo", "sjf", "wfp3", "f1", "unicep")
WORKLOADS: dict[str, tuple[str, Callable[[int], Workload]]] = {
    "as trained: 300 jobs of one CPU on 10 machines": (
        "strict", lambda seed: outrider.generate_grid(seed, row=0.4, jobs=300, machines=10)
    ),
    "more and longer: 1000 jobs of one CPU on 30 machines, load 1.1": (
        "strict",
        lambda seed: outrider.generate_grid(seed, row=0.2, jobs=1000, machines=30, load=1.1),
    ),
    "wide jobs: 4 to 20 of 24 CPUs, EASY backfilling": (
        "easy",
        lambda seed: outrider.generate_grid(seed, like="vengerov", rate=0.17, length_s=2000.0),
    ),
}  # fmt: skip


def slowdown(trace: Workload, seed: int, discipline: str, policy: str, net: str) -> float:
    """Return the mean bounded slowdown of one run."""
    run = outrider.replay(
        trace, policy, seed=seed, estimates=ESTIMATES, discipline=discipline, jobs=False,
        settings={"weights": net} if policy == "window_net" else None,
    )  # fmt: skip
    return float(run.bounded_slowdown["all"]["mean"])


def interval(values: np.ndarray) -> str:
    """Return the mean, and the half width of its 95 % interval."""
    reach = student_t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / len(values) ** 0.5
    return f"{values.mean():.2f} ± {reach:.2f}"


def main() -> None:
    """Print a table for each workload, in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--net", type=Path, help="file of the net; the shipped one by default")
    parser.add_argument("--seeds", type=int, default=20)
    options = parser.parse_args()
    net = "shipped" if options.net is None else str(options.net)
    for words, (discipline, make) in WORKLOADS.items():
        traces = [make(seed) for seed in range(options.seeds)]
        found = {
            policy: np.array(
                [
                    slowdown(trace, seed, discipline, policy, net)
                    for seed, trace in enumerate(traces)
                ]
            )
            for policy in (*RULES, "window_net")
        }
        print(f"\n{words}\n\n| policy | mean bounded slowdown | less than fifo's |\n|---|---|---|")
        for policy, values in found.items():
            print(f"| {policy} | {interval(values)} | {interval(found['fifo'] - values)} |")


if __name__ == "__main__":
    main()
