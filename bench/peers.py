"""Comparison of Outrider with AccaSim, a published simulator, on the same SWF files and rules.

    python bench/peers.py [TRACE ...] [--jobs 2000,8000] [--rounds 3] [--small] [--json]

Generated workloads of parallel jobs, and each TRACE (.swf, whole seconds), run on one pool of CPUs
under FCFS and EASY. The two take turns, each run in a separate process that reads the file and
reports the start of every job. CPU seconds and memory are measured from the file to the last start,
without imports. `same_starts` is the share of jobs that start in the same second in both: if it is
small, they did not do the same work. AccaSim comes from the package index: `make .venv/.accasim`.
"""

import argparse
import collections
import json
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec
import numpy as np
from calibration import calibration_s
from options import parsed
from workloads import parallel

from outrider.formats.swf.reading import read_swf
from outrider.formats.swf.table import write_swf
from outrider.model.decisions import START, Decision
from outrider.model.modes import EASY, STRICT, Discipline
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun

RULES: Final[dict[str, Discipline]] = {"fcfs": STRICT, "easy": EASY}
OURS: Final = "outrider"
PEER: Final = "accasim"
ONE: Final = "--one"
"""First argument of a process that runs one simulator."""
STARTS: Final = {
    "format": "{job};{start}",
    "attributes": {"job": ("id", "str"), "start": ("start_time", "int")},
}
Starts: TypeAlias = dict[str, float]
Run: TypeAlias = Callable[[Path, Path], Starts]
"""Function that runs a trace; it may write into a folder."""


class Measured(msgspec.Struct):
    """Figures of one run, from the file to the last start.

    Attributes:
        cpu_s: seconds of CPU.
        rss_mb: peak memory in MiB, minus that of a process that has imported everything.
        starts: start time of each job, seconds.
    """

    cpu_s: float
    rss_mb: float
    starts: Starts


def outrider_under(rule: str) -> Run:
    """Return a function that replays a trace as `outrider replay` does."""
    policy = make_policy("fifo", {}, 0, "fifo")
    policy.wants_scores = False

    def run(trace: Path, _: Path) -> Starts:
        workload, starts = read_swf(trace), dict[str, float]()

        def keep(decision: Decision) -> None:
            if decision.action == START:
                starts[workload.job_names[decision.job]] = decision.time_s

        GridRun(workload, [policy], keep, discipline=RULES[rule]).run()
        return starts

    return run


def accasim_under(rule: str) -> Run:
    """Return a function that simulates a trace with AccaSim, on one node with all CPUs."""
    vars(collections)["Mapping"] = Mapping  # AccaSim expects it here, as until Python 3.10
    from accasim.base.allocator_class import FirstFit
    from accasim.base.scheduler_class import EASYBackfilling, FirstInFirstOut
    from accasim.base.simulator_class import Simulator

    scheduler = (EASYBackfilling if RULES[rule] == EASY else FirstInFirstOut)(FirstFit())

    def run(trace: Path, folder: Path) -> Starts:
        system = {
            "groups": {"pool": {"core": cpus_of(trace)}},
            "resources": {"pool": 1},
            "equivalence": {"processor": {"core": 1}},
        }
        (folder / "system.json").write_text(json.dumps(system))
        Simulator(
            str(trace), str(folder / "system.json"), scheduler, statistics_output=False,
            show_statistics=False, RESULTS_FOLDER_PATH=str(folder), SCHEDULE_OUTPUT=STARTS,
        ).start_simulation()  # fmt: skip
        lines = (folder / f"sched-{trace.name}").read_text().split()
        return {job: float(at) for job, at in (line.split(";") for line in lines)}

    return run


UNDER: Final = {OURS: outrider_under, PEER: accasim_under}


def cpus_of(trace: Path) -> int:
    """Return the CPUs of the whole pool, from the header."""
    return int(re.findall(r"^;\s*MaxProcs:\s*(\d+)", trace.read_text(), re.MULTILINE)[0])


def run_one(simulator: str, trace: str, rule: str, folder: str) -> None:
    """Run one simulator in this process, and write its figures into a folder."""
    run = UNDER[simulator](rule)
    before_s, before_mb = time.process_time(), _peak_mb()
    starts = run(Path(trace), Path(folder))
    found = Measured(time.process_time() - before_s, _peak_mb() - before_mb, starts)
    (Path(folder) / "found.json").write_bytes(msgspec.json.encode(found))


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(simulator: str, trace: Path, rule: str) -> Measured:
    """Run one simulator in a separate process and return its figures."""
    with tempfile.TemporaryDirectory() as folder:
        words = [sys.executable, __file__, ONE, simulator, str(trace), rule, folder]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        if done.returncode:
            raise SystemExit(f"{simulator} failed:\n{done.stdout[-1000:]}\n{done.stderr[-3000:]}")
        return msgspec.json.decode((Path(folder) / "found.json").read_bytes(), type=Measured)


def generated(jobs: int, folder: Path) -> Path:
    """Write a generated workload file in whole seconds, as AccaSim requires."""
    made = parallel(jobs)
    run_s = np.ceil(made.run_s)
    trace = folder / f"generated-{jobs}.swf"
    names = [str(n + 1) for n in range(jobs)]
    whole = replace(
        made, submit_s=np.floor(made.submit_s), run_s=run_s, requested_s=run_s, job_names=names
    )
    write_swf(whole, trace, {"Computer": "generated"})
    return trace


def compare(trace: Path, rule: str, rounds: int) -> dict[str, Any]:
    """Run both simulators in turns; return their median costs, and whether they agree."""
    runs: dict[str, list[Measured]] = {simulator: [] for simulator in UNDER}
    for _ in range(rounds):
        for simulator, found in runs.items():
            found.append(measured(simulator, trace, rule))
    submit_s = dict(zip(*_submissions(trace), strict=True))
    ours, theirs = runs[OURS][0].starts, runs[PEER][0].starts
    row: dict[str, Any] = {
        "trace": trace.name,
        "rule": rule,
        "jobs": len(submit_s),
        "same_starts": round(
            sum(ours.get(n) == theirs.get(n) for n in submit_s) / len(submit_s), 4
        ),
    }
    for name, found in runs.items():
        starts = found[0].starts
        wait_s = statistics.fmean(at - submit_s[job] for job, at in starts.items())
        row |= {
            f"{name}_started": len(starts),
            f"{name}_mean_wait_s": round(wait_s, 1),
            f"{name}_cpu_s": round(statistics.median(run.cpu_s for run in found), 3),
            f"{name}_rss_mb": round(statistics.median(run.rss_mb for run in found), 1),
        }
    return {**row, "times_as_fast": round(row[f"{PEER}_cpu_s"] / row[f"{OURS}_cpu_s"], 2)}


def _submissions(trace: Path) -> tuple[list[str], list[float]]:
    workload = read_swf(trace)
    return workload.job_names, workload.submit_s.tolist()


def main() -> int:
    """Compare, print, and return 1 if Outrider was ever the slower one."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("traces", type=Path, nargs="*", metavar="TRACE")
    parser.add_argument("--jobs", default="2000,8000", help="sizes of the generated workloads")
    parser.add_argument("--rounds", type=int, default=3)
    given = parsed(parser, jobs="100", rounds=1)
    if find_spec("accasim") is None:
        raise SystemExit("AccaSim not found; use `make .venv/.accasim`")
    with tempfile.TemporaryDirectory() as name:
        traces = [generated(int(jobs), Path(name)) for jobs in given.jobs.split(",")]
        found = [
            compare(trace, rule, given.rounds)
            for trace in (*traces, *given.traces)
            for rule in RULES
        ]
    slower = [f"{one['trace']} {one['rule']}" for one in found if one["times_as_fast"] < 1]
    result = {"results": found, "slower": slower, "calibration_s": round(calibration_s(), 4)}
    print(json.dumps(result, indent=None if given.json else 1))
    return 1 if slower and not given.small else 0


if __name__ == "__main__":
    if sys.argv[1:2] == [ONE]:
        run_one(*sys.argv[2:])
        sys.exit(0)
    sys.exit(main())
