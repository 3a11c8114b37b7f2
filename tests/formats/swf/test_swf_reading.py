"""Standard Workload Format: what its columns mean for a replay."""

import datetime as dt
import gzip
from pathlib import Path

import numpy as np
import pytest

from outrider.formats.swf.reading import read_swf
from outrider.model.errors import TraceError
from tests.fixtures.workload_files import HEADER, file_of, row


def test_a_line_is_a_job_with_its_numbers_as_names(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(7, 30, 12.5, time_asked=60, wait=2.25, user=3, group=9))
    workload = read_swf(path)
    assert (workload.job_names, workload.user, workload.vo) == (["7"], ["3"], ["9"])
    columns = (workload.submit_s, workload.run_s, workload.requested_s, workload.wait_s)
    assert [column.tolist() for column in columns] == [[30.0], [12.5], [60.0], [2.25]]


def test_what_the_log_does_not_say_is_missing_and_not_a_number_below_zero(tmp_path: Path) -> None:
    workload = read_swf(file_of(tmp_path, row(1, 0, 5)))
    assert np.isnan([workload.requested_s[0], workload.wait_s[0]]).all()
    assert (workload.user, workload.vo) == ([""], ["all"])


def test_a_wait_of_zero_is_a_wait(tmp_path: Path) -> None:
    assert read_swf(file_of(tmp_path, row(1, 0, 5, wait=0))).wait_s.tolist() == [0.0]


@pytest.mark.parametrize("packed", [False, True])
def test_the_content_decides_whether_a_file_is_packed(tmp_path: Path, packed: bool) -> None:
    path = file_of(tmp_path, row(1, 0, 5))
    if packed:
        path.write_bytes(gzip.compress(path.read_bytes()))
    assert read_swf(path).job_names == ["1"]


def test_jobs_that_did_not_run_are_left_out_and_counted_by_reason(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        row(1, 0, 0),
        row(2, 0, -1),
        row(3, 0, 5, cpus=0, cpus_asked=2),
        row(4, 0, 5, cpus=-1),
        row(5, 0, 5),
    )
    workload = read_swf(path)
    assert workload.job_names == ["5"]
    assert workload.skipped == {"run time <= 0": 2, "processors <= 0": 2}


def test_processors_are_those_allocated_or_where_nobody_said_those_requested(
    tmp_path: Path,
) -> None:
    path = file_of(
        tmp_path, row(1, 0, 5, cpus=2, cpus_asked=3), row(2, 0, 5, cpus=-1, cpus_asked=3)
    )
    assert read_swf(path).cpus.tolist() == [2, 3]


def test_parts_of_a_job_are_left_out_where_a_line_tells_the_whole(tmp_path: Path) -> None:
    path = file_of(
        tmp_path,
        row(1, 0, 90, status=1),
        row(1, 0, 40, status=2),
        row(1, 50, 50, status=3),
        row(2, 60, 10, status=3),
    )
    workload = read_swf(path)
    assert workload.job_names == ["1", "2"]
    assert workload.run_s.tolist() == [90.0, 10.0]
    assert workload.skipped == {"part of another line's job": 2}


def test_the_vo_is_any_of_four_columns(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 5, user=1, group=2, queue=3, partition=4))
    found = {vo: read_swf(path, vo=vo).vo[0] for vo in ("user", "group", "queue", "partition")}
    assert found == {"user": "1", "group": "2", "queue": "3", "partition": "4"}


def test_one_cpu_jobs_get_machines_and_parallel_ones_a_pool(tmp_path: Path) -> None:
    sequential = read_swf(file_of(tmp_path, row(1, 0, 5)))
    parallel = read_swf(file_of(tmp_path, row(1, 0, 5), row(2, 0, 5, cpus=3)))
    assert [spec.cpus for spec in sequential.machines] == [1, 1, 1, 1]
    assert [spec.cpus for spec in parallel.machines] == [4]
    assert len(set(sequential.machine_names)) == 4


def test_machines_may_be_named_instead_of_the_headers(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 5, cpus=9))
    assert [spec.cpus for spec in read_swf(path, machines=9).machines] == [9]


def test_jobs_out_of_order_are_sorted_stably_and_it_is_said(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(3, 20, 5), row(2, 10, 5), row(9, 10, 5), row(1, 20, 5))
    workload = read_swf(path)
    assert workload.job_names == ["2", "9", "3", "1"]
    (note,) = workload.notes
    assert "1 submissions come before that of the line above, the first in line 7" in note


def test_a_file_in_order_needs_no_note(tmp_path: Path) -> None:
    assert read_swf(file_of(tmp_path, row(1, 5, 5), row(2, 5, 5))).notes == ()


def test_names_in_the_header_may_be_written_in_any_encoding(tmp_path: Path) -> None:
    for encoding in ("latin-1", "utf-8"):
        path = file_of(tmp_path, row(1, 0, 5), row(2, "x", 5))
        path.write_bytes("; Acknowledge: Åke Sandgren\n".encode(encoding) + path.read_bytes())
        with pytest.raises(TraceError, match="line 8"):
            read_swf(path)
        assert read_swf(path, skip_bad=True).job_names == ["1"]


@pytest.mark.parametrize(
    ("zone", "start"),
    [
        ("; TimeZoneString: Europe/Paris\n", dt.datetime(2006, 1, 29, 3, 0)),  # noqa: DTZ001
        ("; TimeZone: -18000\n", dt.datetime(2006, 1, 28, 21, 0)),  # noqa: DTZ001
        ("; TimeZoneString: Nowhere/Land\n; TimeZone: 3600 # old\n", dt.datetime(2006, 1, 29, 3)),  # noqa: DTZ001
        ("", dt.datetime(2006, 1, 29, 2, 0)),  # noqa: DTZ001
    ],
)
def test_the_header_places_second_zero_on_the_local_clock(
    tmp_path: Path, zone: str, start: dt.datetime
) -> None:
    header = f";  UnixStartTime:  1138500000 \n{zone};MaxProcs: 4 (dual)\n"
    assert read_swf(file_of(tmp_path, row(1, 0, 5), header=header)).start == start


def test_without_a_start_time_the_clock_begins_in_1970(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 5), header="; MaxProcs: 4\n")
    assert read_swf(path).start == dt.datetime(1970, 1, 1)  # noqa: DTZ001


def test_comments_blank_lines_and_old_bytes_may_stand_anywhere(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, "", row(1, 0, 5), "  ; a note by Åke, 5 o'clock: late", "   ", row(2, 1, 5)
    )
    assert read_swf(path).job_names == ["1", "2"]


def test_the_first_field_of_a_name_holds(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 5), header=HEADER + "; MaxProcs: 99\n")
    assert len(read_swf(path).machines) == 4


def test_decimals_of_any_column_are_read(tmp_path: Path) -> None:
    path = file_of(tmp_path, row("1", "0.25", "1e-3", "1.0", cpu_time="142.00"))
    workload = read_swf(path)
    assert (workload.submit_s[0], workload.run_s[0], workload.cpus[0]) == (0.25, 0.001, 1)
