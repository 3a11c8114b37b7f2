"""Real logs of the Parallel Workloads Archive: every line is a job or left out, by another count.

The logs are not part of this project; the tests skip where the folder beside it is absent.
"""

import gzip
from collections import Counter
from pathlib import Path

import pytest

from outrider.api import ReaderOptions, events
from outrider.formats.job_classes import ByTruth
from outrider.formats.swf.reading import read_swf
from outrider.model.errors import TraceError
from outrider_adapters.readers.swf import SwfReader

LOGS = [
    "KTH-SP2-1996-2.1-cln", "OSC-Clust-2000-3.1-cln", "windows/LCG-DE-10d-P100",
    "windows/LCG-NLBE-10d-P100", "windows/LCG-UK-10d-P120", "windows/LPC-early-d149-10d-P100",
]  # fmt: skip


def path_of(shared: Path, name: str) -> Path:
    path = shared / "data/swf" / f"{name}.swf.gz"
    if not path.is_file():
        pytest.skip(f"{path.name} is not in the shared folder")
    return path


def rows_of(path: Path) -> list[list[float]]:
    """Return the numbers of every job line, by a simple reader."""
    lines = gzip.decompress(path.read_bytes()).decode("latin-1").splitlines()
    return [
        [float(word) for word in line.split()]
        for line in lines
        if line.strip() and not line.lstrip().startswith(";")
    ]


@pytest.mark.parametrize("name", LOGS)
def test_a_workload_has_every_job_that_ran(shared: Path, name: str) -> None:
    path = path_of(shared, name)
    workload = read_swf(path, class_by=ByTruth(900))
    ran, skipped = [], Counter[str]()
    for row in rows_of(path):
        cpus = row[7] if row[4] == -1 else row[4]
        if row[3] <= 0:
            skipped["run time <= 0"] += 1
        elif cpus <= 0:
            skipped["processors <= 0"] += 1
        else:
            ran.append((row[1], row[3], cpus, str(int(row[12])), row[3] < 900))
    assert workload.skipped == skipped
    found = zip(
        workload.submit_s.tolist(), workload.run_s.tolist(), workload.cpus.tolist(), workload.vo,
        (job_class == "interactive" for job_class in workload.job_class), strict=True,
    )  # fmt: skip
    assert list(found) == ran


@pytest.mark.parametrize("name", LOGS)
def test_a_log_tells_every_life_or_why_not(shared: Path, name: str) -> None:
    path = path_of(shared, name)
    data = gzip.decompress(path.read_bytes())
    reading = SwfReader(ReaderOptions()).read(data, final=True)
    assert SwfReader.recognises(data[:65536])
    rows = rows_of(path)
    reported = Counter(event[1] for event in reading.events)
    assert (
        reading.records == len(rows) == reported[events.SUBMITTED] + sum(reading.rejected.values())
    )
    assert reported[events.REMOVED] == sum(row[10] == 5 for row in rows)
    assert reported[events.STARTED] == sum(
        row[2] >= 0 and row[3] >= 0 and max(row[4], row[7] if row[4] == -1 else 0) >= 1
        for row in rows
    )


def test_a_variant_with_21_columns_is_refused_with_the_reason(shared: Path) -> None:
    path = path_of(shared, "wagap-2013-nonstandard")
    with pytest.raises(TraceError, match="line 1: 21 columns; expected 18: this is a varia"):
        read_swf(path)


def test_a_log_without_maxprocs_needs_to_be_told_how_many_there_are(shared: Path) -> None:
    path = path_of(shared, "lublin_256")
    with pytest.raises(TraceError, match="MaxNodes says 256 nodes"):
        read_swf(path)
    workload = read_swf(path, machines=256)
    assert (len(workload.run_s), workload.machines[0].cpus) == (10_000, 256)
