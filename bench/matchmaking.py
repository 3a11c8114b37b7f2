"""Matchmaking speed of the mock pool, with real ClassAds.

``cycle_s`` is a whole negotiation cycle: identical jobs against slots, starting one job per slot,
with the event log written. ``mixed_cycle_s`` is the same with jobs of 100 alternating autoclusters,
each matched with every slot that is still free. ``matches_per_s`` counts single symmetric matches
of a job's ad and a slot's, both as the pool makes them. ``raw_matches_per_s`` is the same for two
ads with only Requirements and the attributes that they read: the cost of the bindings alone.

    python bench/matchmaking.py [--jobs 10000] [--slots 1000] [--rounds 5] [--seed 1]
        [--small] [--json]
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from calibration import calibration_s
from options import parsed

from outrider_adapters.htcondor.pool_calls import ClassAd
from outrider_adapters.mock_condor.collector import Machine
from outrider_adapters.mock_condor.pool import MockPool

CYCLE_BUDGET_S = 1.0
MATCHES_BUDGET = 20_000
AUTOCLUSTERS = 100
SUBMISSIONS = 1_000
BEGIN_S = 1_795_231_020.0
SINGLE = 20_000


@contextmanager
def made_pool(slots: int, seed: int) -> Iterator[MockPool]:
    """Yield a pool of one-slot machines in ten clusters, with a real log file."""
    machines = [Machine(name=f"m{n}", cluster=f"c{n % 10}") for n in range(slots)]
    with tempfile.TemporaryFile("w", encoding="utf-8") as log:
        yield MockPool(machines, now_s=BEGIN_S, rng=random.Random(seed), event_log=log)


def cycle_s(jobs: int, slots: int, seed: int, autoclusters: int) -> float:
    """Return the time of one cycle that fills every slot."""
    submissions = min(SUBMISSIONS, jobs)
    with made_pool(slots, seed) as pool:
        for number in range(submissions):
            wish = {"executable": "/bin/job", "request_memory": str(100 + number % autoclusters)}
            pool.submit(f"user{number % 5}", wish, 1000.0, jobs // submissions)
        begin_s = time.perf_counter()
        started = pool.negotiate()
        taken_s = time.perf_counter() - begin_s
    if started != slots:
        raise RuntimeError(f"{started} jobs started on {slots} slots")
    return taken_s


def matches_per_s(job: ClassAd, slot: ClassAd) -> float:
    """Return single symmetric matches per second; the ads must match."""
    if not job.symmetricMatch(slot):
        raise RuntimeError("these ads should match")
    begin_s = time.perf_counter()
    for _ in range(SINGLE):
        job.symmetricMatch(slot)
    return SINGLE / (time.perf_counter() - begin_s)


def measure(jobs: int, slots: int, rounds: int, seed: int) -> dict[str, Any]:
    with made_pool(1, seed) as pool:
        pool.submit("alice", {"executable": "/bin/job"}, 1.0)
        job, slot = pool.schedd("alice").query()[0], pool.slots()[0].ad
    bare_job = ClassAd("[ Requirements = TARGET.Memory >= RequestMemory; RequestMemory = 100 ]")
    bare_slot = ClassAd("[ Requirements = OwnerActive isnt true; Memory = 2048 ]")
    unit_s = calibration_s()
    cycles = [cycle_s(jobs, slots, seed, 1) for _ in range(rounds)]
    mixed = [cycle_s(jobs, slots, seed, AUTOCLUSTERS) for _ in range(rounds)]
    full = [matches_per_s(job, slot) for _ in range(rounds)]
    bare = [matches_per_s(bare_job, bare_slot) for _ in range(rounds)]
    return {
        "jobs": jobs,
        "slots": slots,
        "cycle_s": round(statistics.median(cycles), 3),
        "mixed_cycle_s": round(statistics.median(mixed), 3),
        "matches_per_s": round(statistics.median(full)),
        "raw_matches_per_s": round(statistics.median(bare)),
        "calibration_s": round(unit_s, 4),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--jobs", type=int, default=10_000)
    parser.add_argument("--slots", type=int, default=1_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parsed(parser, jobs=100, slots=10, rounds=1)
    result = measure(given.jobs, given.slots, given.rounds, given.seed)
    met = result["cycle_s"] < CYCLE_BUDGET_S and result["matches_per_s"] >= MATCHES_BUDGET
    result["within_budget"] = met
    if given.json:
        print(json.dumps(result))
    else:
        for name, value in result.items():
            print(f"{name:20} {value}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
