"""CPU time to determine which machines the jobs of an HTCondor pool may use.

The ads are made by hand as condor_submit and a startd write them: default requirements, a clause of
the job, partitionable slots with resource limits, a START that reads the job's owner. `first_s` is
from an empty state to all classes reported; `again_s` is for the same jobs and slots again, as at
each snapshot. There are three sizes: kinds of jobs x kinds of slots (at 5,000 each slot has its own
amounts and limits), and 10,000 jobs. Figures are seconds of CPU, without any network.

    python bench/eligibility.py [--seed 1] [--small] [--json]

Exit code 1 if a budget is missed: 2 s first and .05 s again for 300 x 100, 30 s for 300 x 5,000.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Sequence
from typing import Any

from calibration import calibration_s
from options import parsed

from outrider_adapters.htcondor.eligibility import EligibilityWatch
from outrider_adapters.htcondor.pool_calls import ClassAd, HTCondorException, PoolCalls

SIZES = ((300, 300, 100, 100), (300, 300, 5_000, 5_000), (10_000, 300, 5_000, 20))
"""Numbers of jobs, kinds of jobs, slots and kinds of slots."""
SMALL = ((30, 10, 20, 10),)
BUDGETS_S = {(300, 100): (2.0, 0.05), (300, 5_000): (30.0, None)}
REFRESH_S = 300.0

SLOT = """[Name = "slot1@m{n}"; Arch = "X86_64"; OpSys = "LINUX"; PartitionableSlot = true;
    Cpus = 0; Memory = 10; Disk = 5; KeyboardIdle = 3; State = "Owner"; FileSystemDomain = "d{few}";
    TotalSlotCpus = {cpus}; TotalSlotMemory = {memory}; TotalSlotDisk = {disk};
    Start = KeyboardIdle > 900 && (TARGET.Owner != "user{few}" || TARGET.RequestMemory < {limit});
    WithinResourceLimits = TARGET.RequestCpus <= MY.Cpus && TARGET.RequestMemory <= MY.Memory &&
    TARGET.RequestDisk <= MY.Disk; Requirements = START && WithinResourceLimits]"""
JOB = """[ClusterId = {n}; ProcId = 0; Owner = "user{few}"; FileSystemDomain = "d{few}";
    RequestCpus = {cpus}; RequestDisk = {disk};
    RequestMemory = ifThenElse(MemoryUsage isnt undefined, MemoryUsage, {memory});
    Requirements = ((TARGET.Arch == "X86_64") && (TARGET.OpSys == "LINUX") &&
    (TARGET.Disk >= RequestDisk) && (TARGET.Memory >= RequestMemory) &&
    (TARGET.Cpus >= RequestCpus) && (TARGET.FileSystemDomain == MY.FileSystemDomain ||
    (TARGET.HasFileTransfer ?: {shares}))) && (MY.HeldUntil ?: 0) <= time()]"""


def made(text: str, count: int, kinds: int, rng: random.Random) -> list[Any]:
    """Return `count` ads of `kinds` kinds."""
    of_kind = [
        {
            "few": kind % 10, "cpus": 1 + kind % 32, "memory": 2_000 + 7 * kind,
            "disk": 100_000 + 13 * kind, "limit": 1_000 + kind,
            "shares": rng.choice(("true", "false")),
        }
        for kind in range(kinds)
    ]  # fmt: skip
    return [ClassAd(text.format(n=n, **of_kind[n % kinds])) for n in range(count)]


class Pool:
    """Mock of a collector and a schedd, which return the requested attributes."""

    def __init__(self, jobs: Sequence[Any], slots: Sequence[Any]) -> None:
        self._jobs, self._slots = jobs, slots

    def query(
        self, ad_type: Any, constraint: str = "", projection: Sequence[str] = ()
    ) -> list[Any]:
        return [projected(ad, projection) for ad in self._slots]

    def queue(self, projection: list[str]) -> list[Any]:
        return [projected(ad, projection) for ad in self._jobs]


def projected(ad: Any, names: Sequence[str]) -> Any:
    """Return an ad with these attributes alone."""
    answer = ClassAd()
    answer.update({name: ad.lookup(name) for name in names if name in ad})
    return answer


def report_all(watch: EligibilityWatch, pool: Pool, now_s: float) -> tuple[float, int]:
    """Return CPU seconds until all classes are reported (without queries), and their number."""
    spent_s = -time.process_time()
    watch.look_at_slots(now_s)
    ads = watch.ask(pool.queue, ["ClusterId"])
    classes = {watch.class_of(ad) for ad in ads}
    while not watch.is_done:
        watch.news(now_s, now_s)
    return spent_s + time.process_time(), len(classes)


def measured(jobs: int, job_kinds: int, slots: int, slot_kinds: int, seed: int) -> dict[str, Any]:
    """Measure one size, from an empty state and again."""
    rng = random.Random(seed)
    pool = Pool(made(JOB, jobs, job_kinds, rng), made(SLOT, slots, slot_kinds, rng))
    watch = EligibilityWatch(PoolCalls(pool, None, HTCondorException, ()), REFRESH_S)
    first_s, classes = report_all(watch, pool, 0.0)
    again_s, _ = report_all(watch, pool, 2.0)
    refreshed_s, _ = report_all(watch, pool, 2.0 + REFRESH_S)
    return {
        "jobs": jobs, "job_kinds": job_kinds, "slots": slots, "slot_kinds": slot_kinds,
        "classes": classes, "first_s": first_s, "again_s": again_s, "refreshed_s": refreshed_s,
    }  # fmt: skip


def main() -> int:
    """Measure, print, and return 1 if a budget was missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seed", type=int, default=1)
    options = parsed(parser)
    sizes = SMALL if options.small else SIZES
    results = [measured(*size, options.seed) for size in sizes]
    missed = [
        f"{one['job_kinds']} x {one['slot_kinds']}: {name} {one[name]:.2f}"
        for one in results
        for name, budget_s in zip(
            ("first_s", "again_s"),
            BUDGETS_S.get((one["job_kinds"], one["slot_kinds"]), ()),
            strict=False,
        )
        if budget_s is not None and one[name] > budget_s
    ]
    figures = {"results": results, "missed": missed, "calibration_s": calibration_s()}
    if options.json:
        print(json.dumps(figures))
    else:
        for one in results:
            print("  ".join(f"{name} {value:.3g}" for name, value in one.items()))
        print(f"missed: {missed or 'nothing'}; calibration {figures['calibration_s']:.3f} s")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
