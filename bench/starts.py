"""Gain of a learner from training on the site's own past, with users' information alone.

    python bench/starts.py TRACE[:CPUS]... [--small] [--json]

Each workload file is split in half. The first half trains `sarsa` (from the scheduler's recorded
waits if the file has them, else from FIFO). The second is run from an empty queue under each start,
learning and frozen, and under rules that do not learn. Classes and estimates are the defaults of
`outrider replay`: users' information if the file has it. Without a file a generated window is used,
with true classes and estimates. The output: the mean bounded slowdown, and its difference from the
shipped start that learns, with interval and verdict as in `outrider compare`. There is no budget:
this is for docs/training.md.
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
    """Yield the files (CPUs of the pool after a colon), or a small generated window."""
    for trace in traces:
        name, _, cpus = trace.partition(":")
        yield read_swf(Path(name), machines=int(cpus) if cpus else None)
    if not traces:
        yield egee_window(_GENERATED_SEED, _GENERATED_JOBS)


def measured(workload: Workload) -> dict[str, Any]:
    """Return the figures of one trace."""
    rule = default_rule(workload)
    known = estimated(workload, rule, SEEDS[0])
    behaviour = behaviour_policy_of(known)
    with TemporaryDirectory() as folder:
        rows = compare(Learner("sarsa"), known, Path(folder), SEEDS, behaviour)
    return {
        "trace": workload.name,
        "class_source": workload.class_source,
        "estimates": rule.word,
        "behaviour_policy": behaviour,
        "jobs": len(halves(known)[1].submit_s),
        "rows": rows,
    }


def main() -> None:
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description="Gain of a learner from the site's own past.")
    parser.add_argument("traces", nargs="*", metavar="TRACE[:CPUS]", help="workload files (.swf)")
    given = parsed(parser)
    results = [measured(workload) for workload in workloads(given.traces)]
    if given.json:
        print(json.dumps({"results": results}, indent=2))
        return
    for one in results:
        known = f"classes {one['class_source']}, estimates {one['estimates']}"
        print(f"{one['trace']}: {one['jobs']} test jobs, {known}, after {one['behaviour_policy']}")
        for row in one["rows"]:
            less = row["less_shipped"]
            interval = " to ".join(f"{end:.2f}" for end in less["interval"] or ())
            print(f"  {row['variant']:32} {row['bounded_slowdown']:9.2f} "
                  f"{less['difference']:+9.2f} ({interval}) {less['verdict']}")  # fmt: skip


if __name__ == "__main__":
    main()
