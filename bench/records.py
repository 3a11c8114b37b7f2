"""Parsing speed of the accounting records of PBS and Slurm.

Each reader gets a generated file, in chunks as ``outrider ingest`` feeds it. ``lines_per_s`` is
`LogReader.read` alone, the median of the rounds. ``ingest_lines_per_s`` is all of ``outrider
ingest`` except its imports: events sorted, duplicates found, waits and work counted. Both are lines
per CPU second of one core. Readers that are not installed are listed and left out.

    python bench/records.py [--lines 200000] [--rounds 5] [--seed 1] [--reader NAME]
        [--small] [--json]
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from calibration import calibration_s
from options import parsed

from outrider.api import LogReader, PluginError, ReaderOptions
from outrider.plugins.finding import load_reader
from outrider.replay.log_files import LogFile, ingest

CHUNK_BYTES = 4 << 20
START_S = 1_795_231_020
TARGET_LINES_PER_S = 50_000


class Run(NamedTuple):
    """One job run of the generated site."""

    number: int
    user: int
    cpus: int
    submit_s: int
    start_s: int
    end_s: int
    ending: float  # a number in [0, 1), from which each format derives the ending


def runs(seed: int) -> Iterator[Run]:
    """Yield an endless stream of jobs, by the time of their ends."""
    rng = random.Random(seed)
    end_s = START_S
    for number in range(10_000_000):
        end_s += rng.randrange(4)
        start_s = end_s - rng.randrange(1, 7_200)
        submit_s = start_s - rng.randrange(3_600)
        user, cpus = rng.randrange(200), rng.choice((1, 1, 1, 4, 16, 64))
        yield Run(number, user, cpus, submit_s, start_s, end_s, rng.random())


def pbs_records(seed: int) -> Iterator[str]:
    """Yield records Q, S and E of each job, alternately in Torque's and PBS Pro's format."""
    for run in runs(seed):
        job = f"{run.number}.server.example.org"
        who = f"user=user{run.user} group=group{run.user % 20}"
        times = f"ctime={run.submit_s} qtime={run.submit_s} etime={run.submit_s}"
        if run.number % 2:
            queued = "queue=long"
            slots = "+".join(f"node{run.user:03d}.example.org/{slot}" for slot in range(run.cpus))
            asked = (
                f"Resource_List.neednodes=1:ppn={run.cpus} Resource_List.nodect=1 "
                f"Resource_List.nodes=1:ppn={run.cpus} Resource_List.walltime=72:00:00"
            )
            started = (
                f"{who} jobname=job-{run.number} queue=long {times} start={run.start_s} "
                f"owner=user{run.user}@login.example.org exec_host={slots} {asked}"
            )
        else:
            asked = (
                f"Resource_List.mem=30gb Resource_List.ncpus={run.cpus} Resource_List.nodect=1 "
                f"Resource_List.place=scatter Resource_List.select=1:ncpus={run.cpus}:mem=30GB "
                "Resource_List.walltime=06:00:00"
            )
            head = f'{who} account="acct{run.user % 20}" project=_pbs_project_default'
            queued = f"{head} jobname=job-{run.number} queue=long {times} {asked}"
            started = (
                f"{head} jobname=job-{run.number} queue=long {times} start={run.start_s} "
                f"exec_host=node{run.user:03d}/0*{run.cpus} "
                f"exec_vnode=(node{run.user:03d}:ncpus={run.cpus}:mem=31457280kb) {asked}"
            )
        status = 271 if run.ending < 0.05 else 1 if run.ending < 0.15 else 0
        used = (
            f"session={run.number} end={run.end_s} Exit_status={status} "
            "resources_used.cpupercent=98 resources_used.cput=00:16:16 resources_used.mem=753360kb "
            "resources_used.vmem=8722444kb resources_used.walltime=00:33:27 run_count=1"
        )
        yield f"{_us_stamp(run.submit_s)};Q;{job};{queued}\n"
        yield f"{_us_stamp(run.start_s)};S;{job};{started}\n"
        yield f"{_us_stamp(run.end_s)};E;{job};{started} {used}\n"


def sacct_records(seed: int) -> Iterator[str]:
    """Yield the lines of ``sacct -P`` with a header; every fourth job has two steps."""
    yield (
        "JobID|JobIDRaw|Cluster|Partition|Account|Group|User|Submit|Eligible|Start|End|Elapsed|"
        "ExitCode|State|NNodes|NCPUS|ReqCPUS|ReqMem|AllocTRES|Timelimit|NodeList|JobName\n"
    )
    for run in runs(seed):
        state = "TIMEOUT" if run.ending < 0.05 else "FAILED" if run.ending < 0.15 else "COMPLETED"
        submit, start, end = map(_iso_stamp, run[3:6])
        steps = ("", ".batch", ".extern") if run.number % 4 == 0 else ("",)
        for step in steps:
            yield (
                f"{run.number}{step}|{run.number}{step}|site|long|acct{run.user % 20}|"
                f"group{run.user % 20}|user{run.user}|{submit}|{submit}|{start}|{end}|00:33:27|0:0|"
                f"{state}|1|{run.cpus}|{run.cpus}|30G|billing={run.cpus},cpu={run.cpus},mem=30G,"
                f"node=1|3-00:00:00|node{run.user:03d}|job-{run.number}\n"
            )


def jobcomp_records(seed: int) -> Iterator[str]:
    """Yield one line per job, as ``jobcomp/filetxt`` writes it."""
    for run in runs(seed):
        state = "TIMEOUT" if run.ending < 0.05 else "FAILED" if run.ending < 0.15 else "COMPLETED"
        submit, start, end = map(_iso_stamp, run[3:6])
        yield (
            f"JobId={run.number} UserId=user{run.user}({1000 + run.user}) "
            f"GroupId=group{run.user % 20}({run.user % 20}) Name=job {run.number} JobState={state} "
            f"Partition=long TimeLimit=4320 StartTime={start} EndTime={end} "
            f"NodeList=node{run.user:03d} NodeCnt=1 ProcCnt={run.cpus} "
            f"WorkDir=/home/user{run.user} ReservationName= "
            f"Tres=cpu={run.cpus},mem=30G,node=1,billing={run.cpus} "
            f"Account=acct{run.user % 20} QOS=normal WcKey= Cluster=site SubmitTime={submit} "
            f"EligibleTime={submit} DerivedExitCode=0:0 ExitCode=0:0\n"
        )


RECORDS: dict[str, Callable[[int], Iterator[str]]] = {
    "pbs": pbs_records,
    "slurm-sacct": sacct_records,
    "slurm-jobcomp": jobcomp_records,
}


def _us_stamp(time_s: int) -> str:
    return time.strftime("%m/%d/%Y %H:%M:%S", time.gmtime(time_s))


def _iso_stamp(time_s: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(time_s))


def lines_read(kind: type[LogReader], path: Path) -> int:
    """Return the lines read by the reader alone; exit if it rejects a record."""
    reader = kind(ReaderOptions(timezone="UTC"))
    lines, rest = 0, b""
    with path.open("rb") as log:
        more = True
        while more:
            chunk = log.read(CHUNK_BYTES)
            more = bool(chunk)
            rest += chunk
            reading = reader.read(rest, final=not more)
            if reading.rejected:
                sys.exit(f"{kind.name}: rejected {dict(reading.rejected)}")
            lines += reading.lines
            rest = rest[reading.consumed :]
    return lines


def measure(name: str, kind: type[LogReader], lines: int, rounds: int, seed: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "records"
        made = RECORDS[name](seed)
        with path.open("w") as log:
            for _ in range(lines):
                log.write(next(made))
        taken = []
        for _ in range(rounds):
            start_s = time.process_time()
            count = lines_read(kind, path)
            taken.append(time.process_time() - start_s)
            if count != lines:
                sys.exit(f"{name}: {count} lines read, {lines} written")
        start_s = time.process_time()
        ingest([LogFile(path, name, timezone="UTC")])
        ingested_s = time.process_time() - start_s
        size = path.stat().st_size
    return {
        "lines_per_s": round(lines / statistics.median(taken)),
        "ingest_lines_per_s": round(lines / ingested_s),
        "bytes_per_line": round(size / lines),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--lines", type=int, default=200_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--reader", choices=RECORDS, help="only this one")
    given = parsed(parser, lines=500, rounds=1)
    measured: dict[str, dict[str, int] | None] = {}
    for name in [given.reader] if given.reader else RECORDS:
        try:
            kind = load_reader(name)
        except PluginError as error:
            print(f"left out: {error}", file=sys.stderr)
            measured[name] = None
            continue
        measured[name] = measure(name, kind, given.lines, given.rounds, given.seed)
    missed = [
        name
        for name, figures in measured.items()
        if figures is not None and figures["lines_per_s"] < TARGET_LINES_PER_S
    ]
    result = {
        "lines": given.lines,
        "rounds": given.rounds,
        "seed": given.seed,
        "readers": measured,
        "target_lines_per_s": TARGET_LINES_PER_S,
        "missed": missed,
        "calibration_s": round(calibration_s(), 4),
    }
    if given.json:
        print(json.dumps(result))
    else:
        for name, figures in measured.items():
            print(f"{name:15} {figures if figures is not None else 'left out'}")
        print(f"target {TARGET_LINES_PER_S} lines/s, calibration {result['calibration_s']} s")
    sys.exit(1 if missed else 0)


if __name__ == "__main__":
    main()
