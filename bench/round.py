"""Duration of a scheduling pass, which must not grow with the number of pending jobs.

The bench uses a shadow engine like the daemon's: a bandit that keeps scores for explanations, 100
clusters, 300 groups of equal pending jobs. Before each pass a fixed number of jobs changes: some
leave, the same number arrives, and machines become free or busy. Only the pass itself (the tick) is
timed. ``all_due_ms`` is the one pass in which the decision epoch of the whole queue expires. The
garbage collector is set up as in the daemon, before there are jobs, so that it visits all of them.

    python bench/round.py [--waiting 10000,20000,50000] [--passes 300] [--changed 500]
        [--seed 1] [--small] [--json]
"""

import argparse
import json
import random
import resource
import statistics
import time
from typing import Any

from calibration import calibration_s
from options import parsed

from outrider.api import Job, JobSpec, MachineSpec, SiteView
from outrider.engine import Engine, PolicyRunner
from outrider.engine.accounting.accounting import Accounting
from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.decisions import Decision
from outrider.model.localtime import ZoneTime
from outrider.plugins.finding import stream
from outrider.service.process.app import tune_interpreter
from outrider_policies.bandits.bandit import Bandit, BanditSettings

CLUSTERS, MACHINES_EACH, GROUPS = 100, 30, 300
BEGIN_S = 1_795_231_020.0
PASS_EVERY_S = 2.0
EPOCH_S = 3600.0
BUDGET_MS = 8.0


class Nowhere:
    """Executor that does not start jobs or wake the engine; the bench itself ticks."""

    def start(self, job: int, machine: int) -> None:
        """Ignore starts, as in shadow."""

    def wake_at(self, time_s: float) -> None:
        """Ignore wake-ups, since the bench ticks."""


class Kept:
    """Recorder of the last row of every job, as ``explain`` needs it."""

    def __init__(self) -> None:
        self.last: dict[int, Decision] = {}
        self.rows = 0

    def decided(self, decision: Decision, /) -> None:
        self.last[decision.job] = decision
        self.rows += 1

    def ended(
        self, policy: str, job: Job, ending: str, reason: str, run_s: float, reward: float | None,
        on_policy: bool,
    ) -> None:  # fmt: skip
        self.rows += 1


class Grouped(Bandit):
    """Bandit with a fixed number of groups of equal jobs, as in the budget."""

    def group_key(self, job: Job, view: SiteView) -> int:
        return job.number % GROUPS


class Bench:
    """Site with this number of pending jobs, and the changes between two passes."""

    def __init__(self, waiting: int, changed: int, seed: int) -> None:
        self.rng = random.Random(seed)
        self.changed = changed
        clock = ZoneTime("UTC")
        self.site = Site(clock, [])
        policy = Grouped(BanditSettings(), stream(seed, "policy:bandit"))
        policy.wants_scores = True
        self.kept = Kept()
        self.runner = PolicyRunner(policy, False, EPOCH_S)
        accounting = Accounting(clock)
        self.engine = Engine(self.site, accounting, [self.runner], Nowhere(), self.kept)
        self.now = BEGIN_S
        machines = CLUSTERS * MACHINES_EACH
        self.engine.feed(
            (BEGIN_S, ev.JOINED, m, MachineSpec(cluster=f"c{m % CLUSTERS}", active_w=50.0 + m % 97))
            for m in range(machines)
        )
        self.jobs = list(range(waiting))
        self.next_job = waiting
        self.fill()

    def fill(self) -> None:
        """Fill the queue in slices, and run passes until every job has a decision."""
        for at in range(0, len(self.jobs), 500):
            slice_ = self.jobs[at : at + 500]
            self.engine.feed((self.now, ev.SUBMITTED, job, JobSpec()) for job in slice_)
            self.tick()
        while self.runner.queue.blocked:
            self.tick()

    def change(self) -> None:
        """Replace some jobs; every tenth runs a little first, so that the policy learns."""
        rng, now = self.rng, self.now
        for n in range(self.changed):
            at = rng.randrange(len(self.jobs))
            job, self.jobs[at] = self.jobs[at], self.next_job
            if n % 10 == 0:
                machine = rng.randrange(CLUSTERS * MACHINES_EACH)
                ending = ev.COMPLETED if rng.random() < 0.7 else ev.REMOVED
                self.engine.feed(
                    [(now, ev.STARTED, job, (machine, 1)), (now + 1.0, ending, job, "killed")]
                )
            else:
                self.engine.feed([(now, ev.REMOVED, job, "removed")])
            self.engine.feed([(now + 1.0, ev.SUBMITTED, self.next_job, JobSpec())])
            self.kept.last.pop(job, None)
            self.next_job += 1

    def tick(self, after_s: float = PASS_EVERY_S) -> float:
        """Run one pass and return its seconds."""
        self.now += after_s
        start_s = time.perf_counter()
        self.engine.feed([(self.now, ev.TICK, 0, None)])
        return time.perf_counter() - start_s


def measure(waiting: int, changed: int, passes: int, seed: int) -> dict[str, Any]:
    """Measure passes in which `changed` of the pending jobs are new."""
    bench = Bench(waiting, changed, seed)
    rows = bench.kept.rows
    taken_ms: list[float] = []
    cpu_ms: list[float] = []
    for _ in range(passes):
        bench.change()
        cpu_s = time.process_time()
        taken_ms.append(1000.0 * bench.tick())
        cpu_ms.append(1000.0 * (time.process_time() - cpu_s))
    rows = bench.kept.rows - rows
    all_due_ms = 1000.0 * bench.tick(EPOCH_S)
    ranked = statistics.quantiles(taken_ms, n=100, method="inclusive")
    return {
        "waiting": waiting,
        "p50_ms": round(statistics.median(taken_ms), 3),
        "p99_ms": round(ranked[98], 3),
        "cpu_p99_ms": round(statistics.quantiles(cpu_ms, n=100, method="inclusive")[98], 3),
        "max_ms": round(max(taken_ms), 3),
        "rows_a_pass": round(rows / passes, 1),
        "all_due_ms": round(all_due_ms, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--passes", type=int, default=300)
    parser.add_argument(
        "--changed", type=int, default=500, help="new jobs per pass (the same number leaves): 5 %%"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--waiting", default="10000,20000,50000", help="pending jobs: three sizes")
    given = parsed(parser, waiting="300,600,1500", changed=15, passes=3)
    unit_s = calibration_s()
    tune_interpreter()  # as the daemon does when it is ready
    found = [
        measure(waiting, given.changed, given.passes, given.seed)
        for waiting in map(int, given.waiting.split(","))
    ]
    for row in found:
        row["p50_calibrations"] = round(row["p50_ms"] / 1000.0 / unit_s, 4)
        row["p99_calibrations"] = round(row["p99_ms"] / 1000.0 / unit_s, 4)
    result = {
        "clusters": CLUSTERS,
        "groups": GROUPS,
        "changed": given.changed,
        "passes": given.passes,
        "calibration_s": round(unit_s, 4),
        "sizes": found,
        "p99_within_budget": found[0]["p99_ms"] < BUDGET_MS,
        "p50_of_50000_over_10000": round(found[2]["p50_ms"] / found[0]["p50_ms"], 2),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }
    if given.json:
        print(json.dumps(result))
        return
    for row in found:
        print("  ".join(f"{name} {value}" for name, value in row.items()))
    for name, value in result.items():
        if name != "sizes":
            print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
