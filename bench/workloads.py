"""Replay speed of workloads in jobs per CPU-second, for growing sizes.

    python bench/workloads.py [TRACE ...] [--jobs 1000,10000,100000] [--overload 10000]
        [--policy NAME ...] [--small] [--json]

FCFS and EASY run every TRACE (.swf, .swf.gz), and generated workloads of growing size: serial jobs
on 100 machines, and parallel ones on a pool of 256 CPUs; and 10,000 parallel jobs that exceed the
pool's capacity, so that the queue grows to about a thousand. A few such workloads run under
`conservative`, in which each pending job has a reservation. The output includes the longest queue,
which determines the cost of a scheduling pass. Other policies run the traces only.
"""

import argparse
import dataclasses
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from calibration import calibration_s
from options import parsed

from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload, one_pool
from outrider.model.decisions import START, Decision
from outrider.model.modes import CONSERVATIVE, EASY, STRICT, Discipline
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun
from outrider.simulation.estimates import EXACT, EstimateRule, estimated
from outrider.simulation.generators.grids.workloads import perez_grid

FCFS_JOBS_PER_S = 5_000
EASY_JOBS_PER_S = 1_500
EASY_QUEUE = 1_000
RESERVED_JOBS = (500, 1_000, 2_000)
"""Sizes under `conservative`; small, because a job's cost grows with the square of the queue."""
CHEAP: tuple[Discipline, ...] = (STRICT, EASY)
POOL_CPUS = 256
WIDEST = 64


def serial(jobs: int) -> Workload:
    """Return one-CPU jobs at nine tenths of the capacity of 100 machines."""
    return perez_grid(0.4, 1, jobs=jobs, machines=100, load=0.9)


def parallel(jobs: int, load: float = 0.75) -> Workload:
    """Return jobs of 1 to 64 CPUs, powers of two, at a load relative to the pool."""
    grid = serial(jobs)
    rng = np.random.default_rng(2)
    cpus = 2 ** rng.integers(0, WIDEST.bit_length(), jobs)
    drawn = float((grid.run_s * cpus).sum() / (grid.submit_s[-1] * POOL_CPUS))
    names, machines = one_pool(POOL_CPUS)
    return dataclasses.replace(
        grid,
        name=f"parallel at load {load:g}",
        submit_s=grid.submit_s * drawn / load,
        cpus=cpus,
        machine_names=names,
        machines=machines,
    )


def longest_queue(submit_s: Any, start_s: list[float]) -> int:
    """Return the longest queue; a job that starts immediately did not wait."""
    times = np.concatenate([submit_s, start_s])
    change = np.concatenate([np.ones(len(submit_s)), -np.ones(len(start_s))])
    order = np.lexsort((change, times))
    return int(max(0.0, change[order].cumsum().max()))


def measure(
    workload: Workload, policy: str, discipline: Discipline, unit_s: float
) -> dict[str, Any]:
    """Measure one replay of a workload."""
    acting = make_policy(policy, {}, 0, policy)
    acting.wants_scores = False
    starts: list[float] = []

    def keep(decision: Decision) -> None:
        if decision.action == START:
            starts.append(decision.time_s)

    out = GridRun(workload, [acting], keep, discipline=discipline).run()
    jobs = len(workload.submit_s)
    return {
        "workload": workload.name,
        "jobs": jobs,
        "policy": policy,
        "discipline": discipline,
        "longest_queue": longest_queue(workload.submit_s, starts),
        "cpu_s": round(out["cpu_s"], 3),
        "jobs_per_s": round(jobs / out["cpu_s"]),
        "calibrations_per_1000": round(out["cpu_s"] / unit_s / jobs * 1e3, 2),
    }


def growth(
    make: Callable[[int], Workload], sizes: list[int], discipline: Discipline, unit_s: float
) -> list[dict[str, Any]]:
    """Measure a workload in several sizes; `per_job_ratio` is a job's cost / the smallest's.

    The smallest is run twice and the first run ignored, which is slow.
    """
    measure(make(sizes[0]), "fifo", discipline, unit_s)
    runs = [measure(make(size), "fifo", discipline, unit_s) for size in sizes]
    for run in runs:
        run["per_job_ratio"] = round(runs[0]["jobs_per_s"] / run["jobs_per_s"], 2)
    return runs


def missed(runs: list[dict[str, Any]]) -> list[str]:
    """Return the runs of FCFS and EASY that miss their budget."""
    out = []
    for run in runs:
        if (
            run["policy"] != "fifo"
            or (run["discipline"] == "easy" and run["longest_queue"] > EASY_QUEUE)
            or run["discipline"] == CONSERVATIVE
        ):
            continue
        budget = EASY_JOBS_PER_S if run["discipline"] == "easy" else FCFS_JOBS_PER_S
        if run["jobs_per_s"] < budget:
            out.append(f"{run['workload']} {run['discipline']}: {run['jobs_per_s']} < {budget}")
    return out


def print_runs(
    runs: list[dict[str, Any]], too_slow: list[str], unit_s: float, as_json: bool
) -> int:
    """Print figures and missed budgets; return the exit code, 1 if any was missed."""
    if as_json:
        print(json.dumps({"calibration_s": round(unit_s, 4), "runs": runs, "missed": too_slow}))
    else:
        for run in runs:
            print("  ".join(f"{name} {value}" for name, value in run.items()))
    for line in too_slow:
        print(f"too slow: {line}", file=sys.stderr)
    return int(bool(too_slow))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="*", metavar="TRACE")
    parser.add_argument(
        "--jobs", default="1000,10000,100000", help="sizes of the generated workloads"
    )
    parser.add_argument(
        "--overload", type=int, default=10_000, help="jobs that exceed the pool's capacity"
    )
    parser.add_argument("--policy", action="append", default=[], help="also run the traces with it")
    given = parsed(parser, jobs="100,200", overload=200)
    unit_s = calibration_s()
    sizes = [int(size) for size in given.jobs.split(",")]
    runs = growth(serial, sizes, STRICT, unit_s)
    for discipline in CHEAP:
        runs += growth(parallel, sizes, discipline, unit_s)
    runs += [measure(parallel(given.overload, load=1.1), "fifo", rule, unit_s) for rule in CHEAP]
    for jobs in RESERVED_JOBS[: 1 if given.small else None]:
        runs.append(measure(parallel(jobs, load=1.3), "fifo", CONSERVATIVE, unit_s))
    for path in given.traces:
        workload = estimated(read_swf(path), EstimateRule(EXACT), 0)
        rules = CHEAP if workload.is_parallel else CHEAP[:1]
        for policy in ("fifo", *given.policy):
            runs += [measure(workload, policy, discipline, unit_s) for discipline in rules]
    return print_runs(runs, missed(runs), unit_s, given.json)


if __name__ == "__main__":
    sys.exit(main())
