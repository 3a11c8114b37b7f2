"""Cost of one replicate that simulates a site's present state forward under a policy.

    python bench/candidate_starts.py [--jobs 10000] [--policies fifo,sjf,...] [--small] [--json]

The site has 200 busy machines of one CPU, 20 users with three requests, and a record of three days
in which jobs arrived one after the other. Then the waiting jobs arrived within an hour. `recall` is
the cost of restoring the daemon's state from its snapshot, once for all policies.
"""

import argparse
import json
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from calibration import calibration_s
from options import parsed

from outrider.forecast.candidate_starts import MIN_REPLICATES, CandidateStarts
from outrider.forecast.followed_site import FollowedSite
from outrider.journal import Entry, Journal, SnapshotStore
from outrider.model import events as ev
from outrider.model.events import NamedEvent
from outrider.model.jobs import JobSpec
from outrider.model.machines import MachineSpec
from outrider.plugins.finding import make_policy
from outrider.service.config.loaded import check_config
from outrider.service.config.reading import JOURNAL_NAME
from outrider.service.journal.recording import SNAPSHOTS_NAME
from outrider.service.twin.candidates_cycle import present_of, recall_core

BEGIN_S = 1_600_000_000.0
NOW_S = BEGIN_S + 3 * 86_400.0
SEEN_EVERY_S = 600.0
BUDGET_S = 120.0
"""Budget of `MIN_REPLICATES` of one policy, 10,000 jobs: twice that of a look, if alone."""


def events(jobs: int, machines: int) -> list[NamedEvent]:
    """Return the past events in the order of time."""
    rng = np.random.default_rng(1)
    specs = [
        JobSpec(user=f"user{n}", estimate_s=(600.0, 3_600.0, 14_400.0)[n % 3]) for n in range(20)
    ]
    recorded: list[NamedEvent] = []
    for machine in range(machines):
        name = f"m{machine}"
        joined = MachineSpec(cluster=f"c{machine % 4}", usable=True, active_w=100.0 + machine % 4)
        recorded.append((BEGIN_S, ev.JOINED, name, joined))
        at_s, number = BEGIN_S + 10.0, 0
        while at_s < NOW_S:
            spec, job = specs[int(rng.integers(20))], f"{name}-{number}"
            run_s = float((spec.estimate_s or 0.0) * rng.choice([0.3, 0.6, 0.9]))
            recorded += [(at_s, ev.SUBMITTED, job, spec), (at_s, ev.STARTED, job, (name, 1))]
            if at_s + run_s <= NOW_S:
                recorded.append((at_s + run_s, ev.COMPLETED, job, None))
            at_s, number = at_s + run_s + 1.0, number + 1
    for number in range(jobs):
        submitted_s = NOW_S - 3_600.0 + 3_600.0 * number / jobs
        recorded.append((submitted_s, ev.SUBMITTED, f"w{number}", specs[int(rng.integers(20))]))
    seen = np.arange(BEGIN_S, NOW_S + 1.0, SEEN_EVERY_S).tolist()
    recorded += [(at_s, ev.TICK, "log", None) for at_s in seen]
    return sorted(recorded, key=lambda event: event[0])


def measure(
    folder: Path, jobs: int, machines: int, policies: list[str], replicates: int
) -> dict[str, Any]:
    """Return CPU seconds of a replicate by policy, and of the preparation."""
    journal = folder / JOURNAL_NAME
    with Journal(journal) as opened:
        opened.append(Entry(inputs=[("log", event) for event in events(jobs, machines)]))
    given = {"state_dir": str(folder), "adapters": {"logtail": {"paths": ["/nowhere"]}}}
    tables: dict[str, Any] = {name: {} for name in policies}
    loaded = check_config({**given, "policies": tables}, "bench")
    site = FollowedSite(journal)
    for _ in site.catch_up():
        pass
    core, _ = recall_core(loaded, [], journal, site.seq)
    SnapshotStore(folder / SNAPSHOTS_NAME).save(site.seq, core.save())
    begin_s = time.process_time()
    core, _ = recall_core(loaded, [], journal, site.seq)
    recall_s = time.process_time() - begin_s
    begin_s = time.process_time()
    ahead = CandidateStarts(
        present_of(loaded, core), site, lambda name, seed: make_policy(name, {}, seed, "bench"), 0,
        time.process_time,
    )  # fmt: skip
    ahead.future(0)  # compiles
    out: dict[str, Any] = {
        "recall_s": round(recall_s, 2), "present_s": round(time.process_time() - begin_s, 2)
    }  # fmt: skip
    for name in policies:
        begin_s = time.process_time()
        for number in range(replicates):
            ahead.run(name, ahead.future(number))
        took_s = (time.process_time() - begin_s) / replicates
        out[name] = {"replicate_s": round(took_s, 3)}
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--machines", type=int, default=200)
    parser.add_argument("--replicates", type=int, default=3)
    parser.add_argument("--policies", default="fifo,sjf,lowest_watts,survival,bandit")
    given = parsed(parser, jobs=20, machines=4, policies="fifo")
    policies = given.policies.split(",")
    with tempfile.TemporaryDirectory() as folder:
        results = measure(Path(folder), given.jobs, given.machines, policies, given.replicates)
    slow = [name for name in policies if results[name]["replicate_s"] * MIN_REPLICATES > BUDGET_S]
    out = {
        "jobs": given.jobs,
        "machines": given.machines,
        "results": results,
        "missed": slow,
        "max_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024,
        "calibration_s": round(calibration_s(), 4),
    }
    if given.json:
        print(json.dumps(out))
    else:
        for name, value in results.items():
            print(f"{name:>14} {value}")
    if slow:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
