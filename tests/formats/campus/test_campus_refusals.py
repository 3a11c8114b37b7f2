"""Bad campus files: the error names file, line, column, value and what would be right."""

import gzip
import re
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from outrider.formats.campus.files import read_campus
from outrider.model.errors import TraceError
from tests.fixtures import made_campuses as made
from tests.suite.examples import examples

MACHINES, OWNERS, JOBS = (made.TABLES[f"{name}.csv"] for name in ("machines", "owners", "jobs"))

BAD_ROWS = [
    ("machines", MACHINES + "m1,lab,1,1,1\n",
     'machines.csv: line 4, column "machine": duplicate machine: "m1"; expected a name'),
    ("machines", MACHINES + ",lab,1,1,1\n", 'line 4, column "machine": empty name: ""'),
    ("machines", MACHINES + "m2,,1,1,1\n", 'line 4, column "cluster": empty name: ""'),
    ("machines", MACHINES + "m2,lab,1,-4,1\n", 'line 4, column "idle_w": negative: "-4"; expected'),
    ("machines", MACHINES + "m2,lab,x,1,1\n", 'line 4, column "active_w": not a number: "x"'),
    ("machines", MACHINES + "m2,lab,nan,1,1\n", 'column "active_w": not a number: "nan"'),
    ("machines", MACHINES + "m2,lab,1,1,1e300\n",
     'column "sleep_w": too large: "1e300"; expected watts, at most 1e+06'),
    ("machines", MACHINES + "m2,lab,inf,1,1\n", 'column "active_w": not a number: "inf"'),
    ("owners", OWNERS + "m00,1,2\n",
     'unknown machine: "m00"; expected a machine of machines.csv; did you mean "m0"?'),
    ("owners", OWNERS + "m00,1,2\n", 'owners.csv: line 5, column "machine": unknown machine'),
    ("owners", OWNERS + "m0,9,8.5\n",
     'line 5, column "logout_s": log-out before log-in: "8.5"; expected 9 (its login_s)'),
    ("owners", OWNERS + "m0,-1,2\n", 'line 5, column "login_s": negative: "-1"; expected 0'),
    ("owners", OWNERS + "m0,1,soon\n",
     'line 5, column "logout_s": not a number: "soon"; expected a number'),
    ("owners", OWNERS + "m0,5,nan\n", 'line 5, column "logout_s": not a number: "nan"'),
    ("owners", OWNERS + "m0,1767960000,1767963600\n",
     'too large: "1767960000"; expected seconds since the start of the trace (no Unix time)'),
    ("owners", OWNERS + "m0,nan,5\n", 'line 5, column "login_s": not a number: "nan"'),
    ("owners", OWNERS + "m0,1_0,50\n", 'line 5, column "login_s": not a number: "1_0"'),
    ("owners", OWNERS + "m0,1\n",
     "line 5: wrong number of fields: 2; expected 3 fields"),
    ("owners", OWNERS + "m0,1,2,3\n", "line 5: wrong number of fields: 4; expected 3"),
    ("jobs", JOBS + "a,30,1,,u,v\n",
     'jobs.csv: line 5, column "job": duplicate job: "a"; expected a name that no job above'),
    ("jobs", JOBS + ",30,1,,u,v\n", 'line 5, column "job": empty name: ""'),
    ("jobs", JOBS + "d,,1,,u,v\n", 'line 5, column "submit_s": not a number: ""'),
    ("jobs", JOBS + "d,nan,1,,u,v\n", 'line 5, column "submit_s": not a number: "nan"'),
    ("jobs", JOBS + "d,-30,1,,u,v\n", 'line 5, column "submit_s": negative: "-30"'),
    ("jobs", JOBS + "d,1e15,1,,u,v\n", 'line 5, column "submit_s": too large: "1e15"; expected '),
    ("jobs", JOBS + "d,30,1e15,,u,v\n", 'line 5, column "run_s": too large: "1e15"; expected'),
    ("jobs", JOBS + "d,30,1,1e15,u,v\n", 'line 5, column "kill_s": too large: "1e15"; expected '),
    ("jobs", JOBS + "d,30,1,-5,u,v\n", 'line 5, column "kill_s": negative: "-5"; expected'),
    ("jobs", JOBS + "d,30,-1,,u,v\n", 'line 5, column "run_s": negative: "-1"'),
    ("jobs", JOBS + "d,30,never,,u,v\n",
     'column "run_s": not a number: "never"; expected a number, or nothing for never'),
    ("jobs", JOBS + "d,30,nan,,u,v\n", 'line 5, column "run_s": not a number: "nan"'),
    ("jobs", JOBS + "d,30,1,1e999,u,v\n", 'line 5, column "kill_s": not a number: "1e999"'),
    ("jobs", JOBS + "d,30,,29,u,v\n",
     'line 5, column "kill_s": killed before submitted: "29"; expected 30 (its submit_s)'),
]  # fmt: skip

BAD_FILES = [
    ("owners", "machine,login,logout_s\nm0,1,2\n",
     'column "login_s" is missing (found login: did you mean "login"?); expected "machine,'),
    ("owners", "", 'owners.csv: line 1: column "machine" is missing; expected'),
    ("owners", "machine,login_s,login_s,logout_s\n", 'line 1: column "login_s" is twice'),
    ("owners", OWNERS + 'm0,1,"2\n', "not CSV: unexpected end of data"),
    ("site", "reconsider = 5\n", 'unknown setting "reconsider"; did you mean "reconsider_s"?'),
    ("site", "[clusters.lab]\nopens = 'always'\n",
     'site.toml: line 2 [clusters.lab]: unknown setting "opens"; did you mean "open"?'),
    ("site", "[clusters.lab]\nopen = '9 to 5'\n",
     'site.toml: line 2 [clusters.lab]: "open": opening hours "9 to 5": cannot read "9 to 5"; '),
    ("site", "reconsider_s = 0\n",
     'site.toml: line 1: "reconsider_s" = 0: expected a number, more than 0, as in reco'),
    ("site", "reconsider_s = nan\n", 'line 1: "reconsider_s" = nan: expected a number'),
    ("site", "sleep_after_open_s = -1\n",
     '"sleep_after_open_s" = -1: expected a number, 0 or more'),
    ("site", "reboot = '25:00'\n",
     '"reboot" = "25:00" is no time of day; expected "03:00" or "never"'),
    ("site", "reboot = 3\n",
     'line 1: "reboot" = 3: expected text in quotes, as in reboot = "03:00"'),
    ("site", "start = 2010-01-01T00:00:00Z\n", '"start" = '),
    ("site", "start = \n", "site.toml: cannot be read as TOML: Invalid value (at line 1"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "text", "message"), BAD_ROWS + BAD_FILES)
def test_what_is_wrong_is_said(tmp_path: Path, name: str, text: str, message: str) -> None:
    made.write_sample(tmp_path, **{name: text})
    with pytest.raises(TraceError, match=re.escape(message)):
        read_campus(tmp_path)


@pytest.mark.parametrize(("name", "text", "message"), BAD_ROWS)
def test_a_bad_row_is_skipped_and_counted_if_asked(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    good = read_campus(made.write_sample(tmp_path))
    campus = read_campus(made.write_sample(tmp_path, **{name: text}), skip_bad=True)
    [(reason, count)] = campus.skipped.items()
    assert (reason.partition(":")[0], count) == (f"{name}.csv", 1)
    assert reason.partition(": ")[2] in message
    campus.skipped.clear()
    made.assert_equal(campus, good)


@pytest.mark.parametrize(("name", "text", "message"), BAD_FILES)
def test_a_bad_file_is_refused_even_if_bad_rows_may_be_skipped(
    tmp_path: Path, name: str, text: str, message: str
) -> None:
    made.write_sample(tmp_path, **{name: text})
    with pytest.raises(TraceError, match=re.escape(message)):
        read_campus(tmp_path, skip_bad=True)


def test_skipped_rows_are_counted_by_reason(tmp_path: Path) -> None:
    made.write_sample(
        tmp_path,
        machines=MACHINES + "m1,lab,1,1,1\n",
        owners=OWNERS + "ghost,1,2\nghost,3,4\nm0,5,4\n",
    )
    assert read_campus(tmp_path, skip_bad=True).skipped == {
        "machines.csv: duplicate machine": 1,
        "owners.csv: unknown machine": 2,
        "owners.csv: log-out before log-in": 1,
    }


@pytest.mark.parametrize("name", ["site.toml", "machines.csv", "owners.csv", "jobs.csv"])
def test_a_missing_file_is_named(tmp_path: Path, name: str) -> None:
    made.write_sample(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(TraceError, match=re.escape(f"no {name} (or {name}.gz)")):
        read_campus(tmp_path)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="nowhere: no such folder"):
        read_campus(tmp_path / "nowhere")


def test_a_table_may_not_be_there_twice(tmp_path: Path) -> None:
    made.write_sample(tmp_path)
    (tmp_path / "jobs.csv.gz").write_bytes(gzip.compress(JOBS.encode()))
    with pytest.raises(TraceError, match=r"both jobs\.csv and jobs\.csv\.gz are there"):
        read_campus(tmp_path)


@pytest.mark.parametrize("length", [10, 30, -4])
def test_a_cut_gzip_file_is_refused(tmp_path: Path, length: int) -> None:
    made.write_sample(tmp_path)
    (tmp_path / "jobs.csv").write_bytes(gzip.compress(JOBS.encode())[:length])
    with pytest.raises(TraceError, match=r"jobs\.csv: cannot be read"):
        read_campus(tmp_path)


def test_text_that_is_no_utf_8_is_refused(tmp_path: Path) -> None:
    made.write_sample(tmp_path)
    (tmp_path / "owners.csv").write_bytes(OWNERS.encode() + b"m\xff,1,2\n")
    with pytest.raises(TraceError, match=r"owners\.csv: byte 0xff is not UTF-8"):
        read_campus(tmp_path)


@settings(max_examples=examples(150))
@given(
    name=st.sampled_from(["site.toml", "machines.csv", "owners.csv", "jobs.csv"]),
    junk=st.binary(max_size=80),
    keep=st.integers(0, 80),
    skip_bad=st.booleans(),
)
def test_any_bytes_give_a_campus_or_an_error_that_names_the_file(
    name: str, junk: bytes, keep: int, skip_bad: bool
) -> None:
    with tempfile.TemporaryDirectory() as place:
        folder = made.write_sample(Path(place))
        (folder / name).write_bytes((folder / name).read_bytes()[:keep] + junk)
        try:
            campus = read_campus(folder, skip_bad=skip_bad)
        except TraceError as error:
            assert re.search(r"(site|machines|owners|jobs)\.(toml|csv)", str(error))  # noqa: PT017
        else:
            assert len(campus.machine_cluster) == len(campus.machine_names)
            assert len(campus.run_s) == len(campus.job_names)
