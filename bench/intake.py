"""Parsing speed of HTCondor text event logs, compared with htcondor2.JobEventLog.

Both read the same generated log, turn by turn in one process, so that a busy machine slows both.
JobEventLog returns its own job events, without extracting hosts, reasons and job specifications.
The reader here does all of that.

    python bench/intake.py [--events 200000] [--rounds 5] [--seed 1] [--small] [--json]
"""

import argparse
import json
import random
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from options import parsed

from outrider.api import ReaderOptions
from outrider_adapters.readers.htcondor import HTCondorLogReader

CHUNK_BYTES = 4 << 20
START_S = 1_795_231_020

USAGE = """\
\t\tUsr 0 00:00:{cpu:02d}, Sys 0 00:00:00  -  Run Remote Usage
\t\tUsr 0 00:00:00, Sys 0 00:00:00  -  Run Local Usage
"""
BYTES = """\
\t0  -  Run Bytes Sent By Job
\t0  -  Run Bytes Received By Job
"""
RESOURCES = """\
\tPartitionable Resources :    Usage  Request Allocated\x20
\t   Cpus                 :        0        1         1\x20
\t   Disk (KB)            :       45     1000   3516089\x20
\t   Memory (MB)          :        2       64       256\x20
"""


def records(events: int, seed: int) -> Iterator[str]:
    """Yield the records of a user log: jobs start, grow, are sometimes evicted, or complete."""
    rng = random.Random(seed)
    waiting: list[tuple[int, int]] = []
    running: list[tuple[int, int]] = []
    now_s, cluster, written = float(START_S), 0, 0
    while written < events:
        now_s += rng.expovariate(2.0)
        stamp = (
            time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(now_s)) + f".{int(now_s % 1 * 1e3):03d}Z"
        )
        chance = rng.random()
        if len(waiting) + len(running) < 200:
            cluster += 1
            for proc in range(10):
                waiting.append((cluster, proc))
                yield submitted(cluster, proc, stamp)
                written += 1
            continue
        written += 1
        if waiting and chance < 0.35:
            job = waiting.pop(rng.randrange(len(waiting)))
            running.append(job)
            yield started(*job, stamp, rng.randrange(500))
        elif running and chance < 0.65:
            yield grown(*running[rng.randrange(len(running))], stamp, rng.randrange(10**6))
        elif running and chance < 0.75:
            job = running.pop(rng.randrange(len(running)))
            waiting.append(job)
            yield evicted(*job, stamp)
        elif running:
            yield completed(*running.pop(rng.randrange(len(running))), stamp)
        else:
            written -= 1


def submitted(cluster: int, proc: int, stamp: str) -> str:
    return (
        f"000 ({cluster:03d}.{proc:03d}.000) {stamp} Job submitted from host: "
        "<10.0.0.1:9618?addrs=10.0.0.1-9618&alias=submit.example.org&noUDP&sock=schedd_1_43af>\n...\n"
    )


def started(cluster: int, proc: int, stamp: str, node: int) -> str:
    return (
        f"001 ({cluster:03d}.{proc:03d}.000) {stamp} Job executing on host: "
        f"<10.1.{node // 250}.{node % 250}:9618?addrs=10.1.{node // 250}.{node % 250}-9618"
        f"&alias=node{node:03d}.example.org&noUDP&sock=startd_{1000 + node}_2ab>\n"
        f"\tSlotName: slot1_{1 + node % 4}@node{node:03d}.example.org\n"
        f'\tCondorScratchDir = "/var/lib/condor/execute/dir_{node}"\n'
        "\tCpus = 1\n\tDisk = 3516089\n\tGPUs = 0\n\tMemory = 256\n...\n"
    )


def grown(cluster: int, proc: int, stamp: str, size: int) -> str:
    return (
        f"006 ({cluster:03d}.{proc:03d}.000) {stamp} Image size of job updated: {size}\n"
        f"\t2  -  MemoryUsage of job (MB)\n\t{size}  -  ResidentSetSize of job (KB)\n...\n"
    )


def evicted(cluster: int, proc: int, stamp: str) -> str:
    return (
        f"004 ({cluster:03d}.{proc:03d}.000) {stamp} Job was evicted.\n\t(0) CPU times\n"
        f"{USAGE.format(cpu=1)}{BYTES}{RESOURCES}...\n"
    )


def completed(cluster: int, proc: int, stamp: str) -> str:
    usage = USAGE.format(cpu=7)
    return (
        f"005 ({cluster:03d}.{proc:03d}.000) {stamp} Job terminated.\n"
        f"\t(1) Normal termination (return value 0)\n{usage}{usage.replace('Run', 'Total')}"
        f"{BYTES}{BYTES.replace('Run', 'Total')}{RESOURCES}"
        f"\n\tJob terminated of its own accord at {stamp[:19].replace(' ', 'T')}Z "
        "with exit-code 0.\n...\n"
    )


def read_here(path: Path) -> int:
    """Return the records read by our reader, fed in chunks as ``outrider ingest`` does."""
    reader = HTCondorLogReader(ReaderOptions())
    count, rest = 0, b""
    with path.open("rb") as log:
        while chunk := log.read(CHUNK_BYTES):
            rest += chunk
            reading = reader.read(rest)
            count += reading.records
            rest = rest[reading.consumed :]
    return count + reader.read(rest, final=True).records


def read_there(path: Path) -> int:
    """Return the number of events read by HTCondor's own bindings."""
    import htcondor2

    with htcondor2.JobEventLog(str(path)) as log:
        return sum(1 for _ in log.events(stop_after=0))


def timed(read: Callable[[Path], int], path: Path, expected: int) -> float:
    start_s = time.perf_counter()
    count = read(path)
    taken_s = time.perf_counter() - start_s
    if count != expected:
        sys.exit(f"{read.__name__}: {count} records read, {expected} written")
    return taken_s


def measure(events: int, rounds: int, seed: int) -> dict[str, float | int | None]:
    try:
        import htcondor2  # noqa: F401
    except ImportError:
        theirs: list[float] | None = None
        print("htcondor2 is not installed: no ratio", file=sys.stderr)
    else:
        theirs = []
    ours: list[float] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "EventLog"
        with path.open("w") as log:
            count = 0
            for record in records(events, seed):
                log.write(record)
                count += 1
        size = path.stat().st_size
        for _ in range(rounds):
            ours.append(timed(read_here, path, count))
            if theirs is not None:
                theirs.append(timed(read_there, path, count))
    ours_s = statistics.median(ours)
    return {
        "events": count,
        "bytes": size,
        "rounds": rounds,
        "seed": seed,
        "events_per_s": round(count / ours_s),
        "mb_per_s": round(size / ours_s / 1e6, 1),
        "htcondor2_events_per_s": round(count / statistics.median(theirs)) if theirs else None,
        "ratio": (
            round(statistics.median(b / a for a, b in zip(ours, theirs, strict=True)), 2)
            if theirs
            else None
        ),
        "max_rss_mb": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--events", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    given = parsed(parser, events=2_000, rounds=1)
    result = measure(given.events, given.rounds, given.seed)
    if given.json:
        print(json.dumps(result))
        return
    for name, value in result.items():
        print(f"{name:24} {value}")


if __name__ == "__main__":
    main()
