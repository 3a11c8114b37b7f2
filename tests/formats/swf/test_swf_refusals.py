"""Bad workload files: the error names file, line, column, value and what would be right."""

import gzip
import re
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from outrider.formats.swf.reading import read_swf
from outrider.model.errors import ConfigurationError, OutriderError, TraceError
from tests.fixtures.workload_files import HEADER, file_of, row

GOOD = row(1, 0, 5)
BAD_ROWS = [
    (row(2, "soon", 5), 'line 7, column "submit time": not a number: "soon"; expected a'),
    (row(2, 1, 5, think="nan"), 'line 7, column "think time": not a number: "nan"'),
    (row(2, 1, "inf"), 'line 7, column "run time": not a number: "inf"'),
    (row(2, 1, "1_0"), 'line 7, column "run time": not a number: "1_0"'),
    (row(2, 1, 5) + " 3", "line 7: 19 columns; expected 18"),
    (row(2, 1, 5)[:-3], "line 7: 17 columns; expected 18"),
    (row(2, -5, 5), 'line 7, column "submit time": negative: "-5"; expected 0 or more'),
    (row(2, 1138500000, 5), 'line 7, column "submit time": too large: "1138500000"; expected '),
    (row(2, 1138500000, 5), "expected seconds since the log's own zero (no Unix time)"),
    (row(2, 1, 2e9), 'line 7, column "run time": too large: "2000000000"'),
    (row(2, 1, 5, wait=-3), 'line 7, column "wait time": negative: "-3"; expected 0 or '),
    (row(2, 1, 5, wait=-3), "expected 0 or more, -1 where it is not known"),
    (row(2, 1, 5, cpus=1.5), 'line 7, column "allocated processors": not a whole number: "1.5"'),
    (row(2, 1, 5, cpus=5), 'line 7, column "allocated processors": larger than the machine: "5"'),
    (row(2, 1, 5, cpus=5), "expected at most 4, by --machines, or else MaxProcs in"),
    (row(2, 1, 5, cpus=-1, cpus_asked=8), 'larger than the machine: "8"'),
    (row(1, 1, 5), 'line 7, column "job number": duplicate job number: "1"; expected '),
    (row(-2, 1, 5), 'line 7, column "job number": no job number: "-2"'),
]


@pytest.mark.parametrize(("bad", "why"), BAD_ROWS)
def test_a_bad_line_is_named(tmp_path: Path, bad: str, why: str) -> None:
    path = file_of(tmp_path, GOOD, bad, row(3, 9, 5))
    with pytest.raises(TraceError, match=re.escape(why)) as caught:
        read_swf(path)
    assert str(caught.value).startswith(str(path))


@pytest.mark.parametrize(("bad", "why"), BAD_ROWS)
def test_a_bad_line_may_be_left_out_and_is_counted(tmp_path: Path, bad: str, why: str) -> None:
    workload = read_swf(file_of(tmp_path, GOOD, bad, row(3, 9, 5)), skip_bad=True)
    assert workload.job_names == ["1", "3"]
    assert list(workload.skipped.values()) == [1]


def test_the_first_of_several_faults_is_named(tmp_path: Path) -> None:
    path = file_of(tmp_path, GOOD, row(2, 1, 5, cpus=9), row(3, -1, 5), row(1, 1, 5))
    with pytest.raises(TraceError, match=r"line 7, .*larger than the machine"):
        read_swf(path)


def test_a_line_with_two_faults_is_counted_once(tmp_path: Path) -> None:
    workload = read_swf(file_of(tmp_path, GOOD, row(1, -1, 5, cpus=99)), skip_bad=True)
    assert workload.skipped == {"duplicate job number": 1}


WHOLE_FILES = [
    (HEADER, "contains no job"),
    ("", "contains no job"),
    (HEADER + row(1, 0, 0), "no job that ran; left out: 1 run time <= 0"),
    (HEADER + GOOD + " 1 {5} q_1d", "line 6: 21 columns; expected 18: this is a variant of"),
    (HEADER + GOOD[:-3] + "\n" + GOOD[:-3], "line 6: 17 columns; expected 18: this is a"),
    ("; MaxNodes: 70 (dual)\n" + GOOD, "the header has no MaxProcs (its MaxNodes says 70 nodes)"),
    (GOOD, "the header has no MaxProcs; expected --machines N"),
    ("; MaxProcs: many\n" + GOOD, 'header field MaxProcs: "many"; expected a number'),
    ("; MaxProcs: 0\n" + GOOD, 'header field MaxProcs: "0"'),
    ("; MaxProcs: 1000001\n" + GOOD, "1000001 machines, by --machines, or else MaxProcs in"),
    (HEADER.replace("1138500000", "yesterday") + GOOD, 'header field UnixStartTime: "yesterday"'),
]


@pytest.mark.parametrize(("text", "why"), WHOLE_FILES)
def test_a_file_that_makes_no_workload_is_refused_even_if_bad_lines_may_be_skipped(
    tmp_path: Path, text: str, why: str
) -> None:
    path = tmp_path / "bad.swf"
    path.write_text(text)
    for skip_bad in (False, True):
        with pytest.raises(TraceError, match=re.escape(why)):
            read_swf(path, skip_bad=skip_bad)


def test_a_packed_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "short.swf.gz"
    whole = gzip.compress((HEADER + GOOD + "\n").encode() * 50)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(TraceError, match="cannot be read to its end: Compressed file ended"):
        read_swf(path)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="none\\.swf: cannot be read to its end: No such file"):
        read_swf(tmp_path / "none.swf")


def test_a_vo_by_no_column_is_refused_and_the_nearest_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r'VO by "groop".*did you mean "group"'):
        read_swf(file_of(tmp_path, GOOD), vo="groop")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(
    where=st.integers(0, len(GOOD) - 1),
    put=st.text(alphabet="0123456789.-+eE_naif; \t\nx", max_size=5),
    skip_bad=st.booleans(),
)
def test_a_damaged_file_gives_a_workload_or_an_error_of_ours(
    tmp_path: Path, where: int, put: str, skip_bad: bool
) -> None:
    path = file_of(tmp_path, row(8, 0, 5), GOOD[:where] + put + GOOD[where + 1 :], row(9, 0, 5))
    try:
        workload = read_swf(path, skip_bad=skip_bad)
    except OutriderError:
        return
    assert (workload.run_s > 0).all()
    assert ((workload.cpus >= 1) & (workload.cpus <= 4)).all()
    assert (workload.submit_s >= 0).all()
