"""Time to set, renew and revert the leases of many jobs on a real HTCondor pool.

The pool runs on the loopback and has thousands of queued jobs that no machine takes. The lever of
the adapter `htcondor` is called as the daemon calls it: a thousand jobs per call, each edit read
back. Figures are wall seconds, and the schedd's CPU seconds during this time.

    python bench/leases.py [--jobs 10000] [--json]

Needs root and a pool (make peers). Exit code 1 if a renewal takes more than 2 s.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from calibration import calibration_s
from options import parsed

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from observing import cpu_s, processes

from outrider.acting.leases import MAX_BATCH
from outrider.api import DecisionRow, Lever
from tests.peers.acting_on_htcondor.acting_pool import acting_pool, add_outrider, client_config
from tests.peers.pool import HTCondorPool, missing_reason

BUDGET_S = 2.0
JOB = "executable = /bin/true\nrequest_memory = 900000\n"


def lever_on(pool: HTCondorPool, folder: Path) -> Lever:
    """Return the lever, with permission to edit all users' jobs."""
    os.environ["CONDOR_CONFIG"] = str(client_config(pool, folder, "outrider"))
    from outrider_adapters.htcondor.real_pool import HTCondorAdapter
    from outrider_adapters.htcondor.settings import HTCondorSettings

    adapter = HTCondorAdapter("pool", HTCondorSettings(collector=pool.collector, lease_s=600.0))
    [kind] = adapter.levers
    return kind(adapter)


def calls(jobs: list[str], lever: Lever) -> Iterator[tuple[str, Callable[[list[str]], Any]]]:
    """Yield the measured calls by name."""

    def rows(some: list[str]) -> list[DecisionRow]:
        return [DecisionRow(0.0, job, "defer", None, 0, "later", "x", "active") for job in some]

    yield "set", lambda some: lever.apply(rows(some))
    yield "renewed", lambda some: lever.apply(rows(some))
    yield "reverted", lever.withdraw


def measured(pool: HTCondorPool, folder: Path, n: int) -> dict[str, Any]:
    """Return the figures for n jobs."""
    add_outrider(pool, folder)
    cluster = pool.submit(f"{JOB}queue {n}\n")
    jobs = [f"host.pool.test#{cluster}.{proc}" for proc in range(n)]
    lever = lever_on(pool, folder)
    lever.withdraw(jobs[:1])  # starts the helper process
    schedd = processes(pool)["schedd"]
    results = []
    try:
        for what, call in calls(jobs, lever):
            began_s, busy_s = time.monotonic(), cpu_s(schedd)
            refused = [call(jobs[k : k + MAX_BATCH]) for k in range(0, n, MAX_BATCH)]
            assert not any(refused), refused[0]
            results.append({
                "what": what,
                "wall_s": time.monotonic() - began_s,
                "schedd_cpu_s": cpu_s(schedd) - busy_s,
            })  # fmt: skip
    finally:
        lever.close()
    return {"jobs": n, "results": results}


def main() -> int:
    """Measure, print and return the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--jobs", type=int, default=10_000)
    options = parsed(parser, jobs=20)
    missing = missing_reason()
    if missing is not None:
        print(f"not measured: {missing}", file=sys.stderr)
        return 0
    with tempfile.TemporaryDirectory() as folder, acting_pool(Path(folder) / "pool") as pool:
        figures = measured(pool, Path(folder), options.jobs)
    renewed_s = next(r["wall_s"] for r in figures["results"] if r["what"] == "renewed")
    figures |= {"budget_s": BUDGET_S, "calibration_s": calibration_s()}
    if options.json:
        print(json.dumps(figures))
    else:
        for row in figures["results"]:
            print(f"{options.jobs:,} leases {row['what']}: {row['wall_s']:.2f} s, "
                  f"{row['schedd_cpu_s']:.2f} s of the schedd's CPU")  # fmt: skip
    return 0 if options.small or renewed_s <= BUDGET_S else 1


if __name__ == "__main__":
    sys.exit(main())
