"""False positives of `outrider compare` for equal policies, by autocorrelation of the waits.

    python bench/blocks.py [--trials 500] [--jobs 300,1000,4000] [--small] [--json]

The waits of two equally good policies are white noise, or first-order autoregressions with
coefficient phi, independent of each other. Blocks are chosen as `outrider compare` chooses them.
The output by phi and number of jobs: the ratio of trials that called them different, of trials
without a verdict (fewer than ten blocks), and the median number of blocks. There is no budget: this
is for docs/comparing.md.
"""

import argparse
import json
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from options import parsed

from outrider_lab.comparison.difference import BETTER, TOO_SMALL, WORSE, Differences, Stretches

PHIS = (0.0, 0.3, 0.7, 0.9, 0.97, 0.99)
GAP_S = 60.0
SEED = 7
_BEFORE = 1_000


def waits(phi: float, jobs: int, trials: int) -> Iterator[NDArray[np.float64]]:
    """Yield (jobs, 2) waits of two policies per trial, with mean 0 (only phi matters)."""
    series = np.random.default_rng(SEED).normal(size=(jobs + _BEFORE, trials, 2))
    for k in range(1, len(series)):
        series[k] += phi * series[k - 1]
    for trial in range(trials):
        yield series[_BEFORE:, trial]


def measured(phi: float, jobs: int, trials: int) -> dict[str, float]:
    """Return one row of the table."""
    arrivals = np.arange(jobs, dtype=np.float64) * GAP_S
    verdicts, blocks = [], []
    for trial, values in enumerate(waits(phi, jobs, trials)):
        found = Differences(("a", "b"), values, Stretches(arrivals, values), trial)
        less = found.between("a", "b")
        verdicts.append(less["verdict"])
        blocks.append(less["blocks"])
    return {
        "phi": phi,
        "jobs": jobs,
        "trials": trials,
        "different_ratio": sum(verdict in (BETTER, WORSE) for verdict in verdicts) / trials,
        "too_small_ratio": verdicts.count(TOO_SMALL) / trials,
        "blocks_median": float(np.median(blocks)),
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="False positives for equal policies.")
    parser.add_argument("--trials", type=int, default=500)
    parser.add_argument("--jobs", default="300,1000,4000")
    given = parsed(parser, trials=5, jobs="300")
    sizes = [int(jobs) for jobs in given.jobs.split(",")]
    rows = [measured(phi, jobs, given.trials) for phi in PHIS for jobs in sizes]
    if given.json:
        print(json.dumps({"results": rows}, indent=2))
        return
    print("phi   jobs  different  no verdict  blocks (median)")
    for row in rows:
        print(
            f"{row['phi']:<5g} {row['jobs']:>4}  {row['different_ratio']:>9.1%}  "
            f"{row['too_small_ratio']:>10.1%}  {row['blocks_median']:>8.0f}"
        )


if __name__ == "__main__":
    main()
