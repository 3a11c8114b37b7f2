"""Replay speed of planning policies on a hundred machines, in jobs per CPU-second.

    python bench/planners.py [--jobs 1000] [--policy NAME ...] [--small] [--json]

The workload is that of `workloads.py`: serial jobs at nine tenths of the capacity of 100 machines.
A pass examines every machine and plans few of them again (`planning/open_machines.py`). `fifo`
shows the cost of the engine alone.
"""

import argparse
import sys

from calibration import calibration_s
from options import parsed
from workloads import measure, print_runs, serial

from outrider.model.modes import STRICT

JOBS_PER_S = 1_000
POLICIES = ("replan", "aggressive", "fuzzy_td")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=1_000)
    parser.add_argument("--policy", action="append", help=f"default: {', '.join(POLICIES)}")
    given = parsed(parser, jobs=60)
    unit_s = calibration_s()
    workload = serial(given.jobs)
    measure(workload, "fifo", STRICT, unit_s)  # warm-up: the first run is slow
    names = ["fifo", *(given.policy or POLICIES)]
    runs = [measure(workload, name, STRICT, unit_s) for name in names]
    too_slow = [
        f"{run['policy']}: {run['jobs_per_s']} < {JOBS_PER_S}"
        for run in runs
        if run["jobs_per_s"] < JOBS_PER_S
    ]
    return print_runs(runs, too_slow, unit_s, given.json)


if __name__ == "__main__":
    sys.exit(main())
