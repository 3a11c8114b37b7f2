"""Real dumps: every row is accounted for, by an independent count.

The dumps are not part of this project; the tests skip where the folder beside it is absent.
"""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from outrider.api import ReaderOptions, events
from outrider.replay.log_files import LogFile, ingest
from outrider_adapters.readers.slurm import SacctReader

XDMOD = "data/slurm/xdmod_phillips_sacct.log.gz"
XDMOD_COLUMNS = (
    "jobid,jobidraw,cluster,partition,qos,account,group,gid,user,uid,submit,eligible,start,end,"
    "elapsed,exitcode,state,nnodes,ncpus,reqcpus,reqmem,reqtres,alloctres,timelimit,nodelist,"
    "jobname"
)
XDMOD_FIELDS = tuple(XDMOD_COLUMNS.split(","))
APEL = "data/slurm/apel_slurm_sacct_records.txt"
APEL_COLUMNS = (
    "JobID,JobName,User,Group,Start,End,Elapsed,CPUTimeRAW,Partition,NCPUS,NNodes,NodeList,MaxRSS,"
    "MaxVMSize,State"
)
APEL_FIELDS = tuple(APEL_COLUMNS.split(","))


def path_of(shared: Path, name: str) -> Path:
    path = shared / name
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared folder")
    return path


def test_every_row_of_a_real_dump_is_told(shared: Path) -> None:
    data = gzip.decompress(path_of(shared, XDMOD).read_bytes())
    rows = [dict(zip(XDMOD_FIELDS, line.split("|"), strict=True))
            for line in data.decode().splitlines()]  # fmt: skip
    states = Counter(row["state"].split()[0] for row in rows)
    reading = SacctReader(ReaderOptions(fields=XDMOD_FIELDS)).read(data, final=True)
    assert (reading.records, reading.rejected, reading.ignored) == (len(rows), {}, {})
    reported = Counter(event[1] for event in reading.events)
    assert reported == {
        events.SUBMITTED: len(rows),
        events.STARTED: sum(row["nodelist"] != "None assigned" for row in rows),
        events.COMPLETED: states["COMPLETED"] + states["FAILED"],
        events.REMOVED: states["CANCELLED"] + states["TIMEOUT"],
    }


def test_a_real_dump_needs_no_mending(shared: Path) -> None:
    file = LogFile(path_of(shared, XDMOD), "slurm-sacct", fields=XDMOD_FIELDS)
    report = ingest([file])
    assert (report["repairs"], report["late"], report["duplicates"]) == ({}, 0, 0)
    assert report["wait_s"]["all"]["n"] == report["events"]["started"]


def test_steps_without_a_job_are_ignored_and_nothing_is_rejected(shared: Path) -> None:
    data = path_of(shared, APEL).read_bytes()
    data = data if data.endswith(b"\n") else data + b"\n"
    steps = sum(b"." in line.partition(b"|")[0] for line in data.splitlines())
    reading = SacctReader(ReaderOptions(fields=APEL_FIELDS)).read(data, final=True)
    assert reading.records == len(data.split(b"\n")) - 1
    assert (reading.ignored, reading.rejected) == ({"step": steps}, {})
