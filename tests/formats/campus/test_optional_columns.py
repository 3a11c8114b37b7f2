"""CPUs, memory, GPUs, clusters and estimates of a campus: read, refused, skipped and written."""

import gzip
import re
from pathlib import Path

import numpy as np
import pytest

from outrider.formats.campus.files import read_campus, write_campus
from outrider.model.errors import TraceError
from outrider.model.machines import Resources
from tests.fixtures import made_campuses as made

MACHINES = (
    "machine,cluster,active_w,idle_w,sleep_w,cpus,memory_mib,gpus\n"
    "m0,lab,57,40,2,4,8000,0\nm1,hall,114,67,3,16,,\nm2,hall,114,67,3,,64000,2\n"
)
HEADER = "job,submit_s,run_s,kill_s,user,vo,cpus,memory_mib,gpus,only,estimate_s\n"
JOBS = HEADER + "a,20,10,,u,v,4,2000,0,lab,60\nb,10,10,,u,v,,,1,hall+lab,\nc,30,10,,u,v,16,,,,7\n"


def test_optional_columns_are_read_in_the_order_of_submission(tmp_path: Path) -> None:
    campus = read_campus(made.write_sample(tmp_path, machines=MACHINES, jobs=JOBS))
    assert campus.capacities is not None
    assert campus.requests is not None
    assert campus.estimate_s is not None
    assert campus.capacities.cpus.tolist() == [4, 16, 1]
    assert [campus.capacities.declared(m) for m in range(3)] == [
        Resources(8_000.0, 0.0), None, Resources(64_000.0, 2.0),
    ]  # fmt: skip
    assert campus.job_names == ["b", "a", "c"]
    assert campus.requests.cpus.tolist() == [1, 4, 16]
    assert [campus.requests.requested(j) for j in range(3)] == [
        Resources(gpus=1.0), Resources(2_000.0), None,
    ]  # fmt: skip
    assert campus.only == ["lab+hall", "lab", ""]
    np.testing.assert_array_equal(campus.estimate_s, [np.nan, 60.0, 7.0])
    assert campus.members_of("lab+hall") == [0, 1, 2]
    assert campus.members_of("hall") == [1, 2]


def test_columns_that_say_nothing_are_as_none(tmp_path: Path) -> None:
    machines = MACHINES.partition("m0")[0] + "m0,lab,57,40,2,1,,\nm1,hall,114,67,3,,,\n"
    jobs = HEADER + "a,10,3600.5,,ann,bio,,,,,\nb,20,,7200,bob,phys,1,,,,\nc,20,5,99,ann,,,,,,\n"
    campus = read_campus(made.write_sample(tmp_path, machines=machines, jobs=jobs))
    assert (campus.capacities, campus.requests, campus.only, campus.estimate_s) == (None,) * 4
    made.assert_equal(campus, read_campus(made.write_sample(tmp_path)))


@pytest.mark.parametrize("gz", [False, True])
def test_optional_columns_are_written_and_read_back(tmp_path: Path, gz: bool) -> None:
    campus = read_campus(made.write_sample(tmp_path, machines=MACHINES, jobs=JOBS))
    write_campus(campus, tmp_path / "out", gz=gz)
    made.assert_equal(read_campus(tmp_path / "out"), campus)


def test_only_the_columns_that_say_something_are_written(tmp_path: Path) -> None:
    jobs = "job,submit_s,run_s,kill_s,user,vo,only\na,1,2,,u,v,lab\n"
    write_campus(read_campus(made.write_sample(tmp_path, jobs=jobs)), tmp_path / "out")
    assert (tmp_path / "out" / "jobs.csv").read_text() == jobs.replace("1,2", "1.0,2.0")
    header = made.TABLES["machines.csv"].partition("\n")[0]
    assert (tmp_path / "out" / "machines.csv").read_text().startswith(f"{header}\n")


def test_gzipped_tables_have_optional_columns_too(tmp_path: Path) -> None:
    plain = read_campus(made.write_sample(tmp_path, machines=MACHINES, jobs=JOBS))
    for name in ("machines.csv", "jobs.csv"):
        packed = gzip.compress((tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.gz").write_bytes(packed)
    made.assert_equal(read_campus(tmp_path), plain)


BAD_MACHINES = [
    ("m3,lab,1,1,1,0,,", "cpus", "no number of CPUs", "a whole number from 1, or nothing for 1"),
    ("m3,lab,1,1,1,2.5,,", "cpus", "no number of CPUs", "a whole number from 1, or nothing for 1"),
    ("m3,lab,1,1,1,-1,,", "cpus", "negative", "0 or more"),
    ("m3,lab,1,1,1,two,,", "cpus", "not a number", "a number, or nothing for 1"),
    ("m3,lab,1,1,1,1,-1,", "memory_mib", "negative", "0 or more"),
    ("m3,lab,1,1,1,1,8G,", "memory_mib", "not a number", "a number, or nothing for not declared"),
    ("m3,lab,1,1,1,1,,-2", "gpus", "negative", "0 or more"),
    ("m3,lab,1,1,1,1,,nan", "gpus", "not a number", "a number, or nothing for not declared"),
]
BAD_JOBS = [
    ("d,40,1,,u,v,0,,,,", "cpus", "no number of CPUs", "a whole number from 1, or nothing for 1"),
    ("d,40,1,,u,v,,-5,,,", "memory_mib", "negative", "0 or more"),
    ("d,40,1,,u,v,,,many,,", "gpus", "not a number", "a number, or nothing for none"),
    ("d,40,1,,u,v,,,,labb,", "only", "unknown cluster",
     "names of clusters joined by +, or nothing for all of them; did you mean \"lab\"?"),
    ("d,40,1,,u,v,,,,lab+,", "only", "unknown cluster", "names of clusters joined by +"),
    ("d,40,1,,u,v,17,,,,", "cpus", "wider than any machine",
     "at most 16, the CPUs of the widest machine of the campus"),
    ("d,40,1,,u,v,5,,,lab,", "cpus", "wider than any machine",
     "at most 4, the CPUs of the widest machine in lab"),
    ("d,40,1,,u,v,,,,,-1", "estimate_s", "negative", "0 or more"),
    ("d,40,1,,u,v,,,,,2e9", "estimate_s", "too large", "seconds since the start of the trace"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("table", "row", "column", "reason", "right"),
    [("machines", *bad) for bad in BAD_MACHINES] + [("jobs", *bad) for bad in BAD_JOBS],
)
def test_a_bad_row_is_named_and_may_be_skipped(
    tmp_path: Path, table: str, row: str, column: str, reason: str, right: str
) -> None:
    texts = {"machines": MACHINES, "jobs": JOBS}
    folder = made.write_sample(tmp_path, **(texts | {table: f"{texts[table]}{row}\n"}))
    value = dict(zip(texts[table].partition("\n")[0].split(","), row.split(","), strict=True))
    wanted = f'{table}.csv: line 5, column "{column}": {reason}: "{value[column]}"; expected '
    with pytest.raises(TraceError, match=re.escape(wanted) + ".*" + re.escape(right)):
        read_campus(folder)
    campus = read_campus(folder, skip_bad=True)
    assert campus.skipped == {f"{table}.csv: {reason}": 1}
    assert (len(campus.machine_names), len(campus.job_names)) == (3, 3)


def test_a_column_given_twice_is_refused(tmp_path: Path) -> None:
    jobs = "job,submit_s,run_s,kill_s,user,vo,cpus,cpus\na,1,2,,u,v,1,1\n"
    with pytest.raises(TraceError, match='column "cpus" is twice'):
        read_campus(made.write_sample(tmp_path, jobs=jobs))


def test_without_machines_no_job_is_too_wide(tmp_path: Path) -> None:
    machines = made.TABLES["machines.csv"].partition("\n")[0] + "\n"
    owners = made.TABLES["owners.csv"].partition("\n")[0] + "\n"
    jobs = HEADER + "a,20,10,,u,v,4,,,,\n"
    campus = read_campus(made.write_sample(tmp_path, machines=machines, owners=owners, jobs=jobs))
    assert campus.requests is not None
    assert campus.requests.cpus.tolist() == [4]
