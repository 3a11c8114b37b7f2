"""Whether a learner gains by training on the site's own past, with what users said alone.

    python bench/starts.py TRACE[:CPUS]... [--small] [--json]

Each workload file is cut in half: the first half trains `sarsa` (from the scheduler's recorded
waits where the file has them, else from FIFO), the second is run from an empty queue under each
start, learning and frozen, and under rules that do not learn. Classes and estimates are the
defaults of `outrider replay`: what users said, where the file has it. Without a file a generated
window is taken, whose classes and estimates tell the truth. Printed: the mean bounded slowdown, and
its difference from the shipped start that learns, with interval and verdict as `outrider compare`
gives them. There is no budget: this is for docs/training.md.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from options import parsed

from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.simulation.estimates import default_rule, estimated
from outrider_lab.papers.perez.calibration import behaviour_policy_of, compare, halves
from outrider_lab.papers.perez.grid_run import egee_window
from outrider_lab.training import Learner

SEEDS = range(2)
_GENERATED_SEED, _GENERATED_JOBS = 20_001, 600


def workloads(traces: list[str]) -> Iterator[Workload]:
    """The files, CPUs of the pool after a colon; or a small generated window."""
    for trace in traces:
        name, _, cpus = trace.partition(":")
        yield read_swf(Path(name), machines=int(cpus) if cpus else None)
    if not traces:
        yield egee_window(_GENERATED_SEED, _GENERATED_JOBS)


def measured(workload: Workload) -> dict[str, Any]:
    """One trace."""
    rule = default_rule(workload)
    told = estimated(workload, rule, SEEDS[0])
    behaviour = behaviour_policy_of(told)
    with TemporaryDirectory() as folder:
        rows = compare(Learner("sarsa"), told, Path(folder), SEEDS, behaviour)
    return {
        "trace": workload.name,
        "class_source": workload.class_source,
        "estimates": rule.word,
        "behaviour_policy": behaviour,
        "jobs": len(halves(told)[1].submit_s),
        "rows": rows,
    }


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Whether a learner gains by the site's past.")
    parser.add_argument("traces", nargs="*", metavar="TRACE[:CPUS]", help="workload files (.swf)")
    given = parsed(parser)
    results = [measured(workload) for workload in workloads(given.traces)]
    if given.json:
        print(json.dumps({"results": results}, indent=2))
        return
    for one in results:
        told = f"classes {one['class_source']}, estimates {one['estimates']}"
        print(f"{one['trace']}: {one['jobs']} jobs judged, {told}, after {one['behaviour_policy']}")
        for row in one["rows"]:
            less = row["less_shipped"]
            interval = " to ".join(f"{end:.2f}" for end in less["interval"] or ())
            print(f"  {row['variant']:32} {row['bounded_slowdown']:9.2f} "
                  f"{less['difference']:+9.2f} ({interval}) {less['verdict']}")  # fmt: skip


if __name__ == "__main__":
    main()
