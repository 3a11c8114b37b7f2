"""Workloads written as files, and read back as the same."""

import copy
from pathlib import Path

import numpy as np
import pytest

from outrider.formats.swf.reading import read_swf
from outrider.formats.swf.table import write_swf
from outrider.formats.workload import Workload
from outrider.model.errors import ConfigurationError
from outrider.simulation.generators.grids import perez_grid, vengerov_grid

MADE = [
    perez_grid(0.2, 3, jobs=300),
    vengerov_grid(0.2, 3, length_s=500),
    vengerov_grid(0.2, 3, length_s=500, steps="continuous"),
]


def assert_same(one: Workload, other: Workload) -> None:
    for name in ("submit_s", "run_s", "cpus", "requested_s", "wait_s"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name), err_msg=name)
    for name in ("job_names", "user", "vo", "job_class", "machine_names"):
        assert getattr(one, name) == getattr(other, name), name
    assert [spec.cpus for spec in one.machines] == [spec.cpus for spec in other.machines]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.name)
@pytest.mark.parametrize("name", ["made.swf", "made.swf.gz"])
def test_what_is_written_is_read_back_to_the_last_digit(
    tmp_path: Path, made: Workload, name: str
) -> None:
    write_swf(made, tmp_path / name, {})
    again = read_swf(tmp_path / name)
    assert_same(made, again)
    assert (again.skipped, again.notes) == ({}, ())


def test_waits_users_and_requested_times_are_written_where_they_are_known(tmp_path: Path) -> None:
    made = perez_grid(0.2, 3, jobs=3)
    made.wait_s[:] = [0.0, 2.5, np.nan]
    made.requested_s[:] = [60.0, np.nan, 0.5]
    made.user[:] = ["7", "", "12"]
    write_swf(made, tmp_path / "made.swf", {})
    assert_same(made, read_swf(tmp_path / "made.swf"))


def test_the_header_holds_what_it_is_given_and_the_size(tmp_path: Path) -> None:
    write_swf(MADE[0], tmp_path / "made.swf", {"Computer": "none"}, ["seed 3"])
    header = (tmp_path / "made.swf").read_text().splitlines()[:8]
    assert header == [
        "; Version: 2.2", "; Computer: none", "; MaxJobs: 300", "; MaxRecords: 300",
        "; MaxProcs: 50", "; Queue: 1 interactive", "; Queue: 2 batch", "; Note: seed 3",
    ]  # fmt: skip


@pytest.mark.parametrize("name", ["made.swf", "made.swf.gz"])
def test_the_same_workload_gives_the_same_bytes(tmp_path: Path, name: str) -> None:
    data = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        write_swf(MADE[0], tmp_path / folder / name, {})
        data.add((tmp_path / folder / name).read_bytes())
    assert len(data) == 1


@pytest.mark.parametrize("column", ["job_names", "user", "vo"])
def test_a_name_that_is_no_number_is_refused(tmp_path: Path, column: str) -> None:
    named = copy.copy(MADE[0])
    setattr(named, column, ["physics"] * 300)
    with pytest.raises(ConfigurationError, match='"physics" cannot be written as SWF'):
        write_swf(named, tmp_path / "made.swf", {})
    assert not (tmp_path / "made.swf").exists()
