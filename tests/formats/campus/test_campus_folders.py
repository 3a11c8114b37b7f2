"""Campus folders: what is read is what was written, and rows of any order or width."""

import gzip
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings

from outrider.formats.campus.campus import Campus
from outrider.formats.campus.files import read_campus, write_campus
from outrider.model.errors import ConfigurationError
from outrider.simulation.generators.campus import generate_campus
from tests.fixtures import made_campuses as made
from tests.suite.examples import examples


def test_a_small_campus_is_read_as_it_stands(tmp_path: Path) -> None:
    campus = read_campus(made.write_sample(tmp_path))
    assert campus.start == made.wall_clock("2010-01-04")
    assert campus.reboot_s == 3 * 3600
    assert [made.told(spec) for spec in campus.clusters] == [
        ("lab", "mon-fri 09:00-17:00, sat 10:00-14:00", 3600, 900),
        ("hall", "always", 3600, 900),
    ]
    assert campus.machine_cluster.tolist() == [0, 1]
    assert campus.active_w.tolist() == [57, 114]
    assert campus.session_machine.tolist() == [0, 1, 0]
    assert campus.logout_s.tolist() == [200, 160.2, 300]
    assert campus.job_names == ["a", "b", "c"]
    np.testing.assert_array_equal(campus.run_s, [3600.5, np.nan, 5])
    np.testing.assert_array_equal(campus.kill_s, [np.nan, 7200, 99])
    assert made.users(campus) == [("ann", "bio"), ("bob", "phys"), ("ann", "all")]
    assert campus.skipped == {}


def test_missing_settings_take_their_defaults(tmp_path: Path) -> None:
    campus = read_campus(made.write_sample(tmp_path, site=""))
    assert (campus.start, campus.reboot_s) == (made.wall_clock("2010-01-01"), 10_800)
    assert (campus.idle_before_job_open_s, campus.idle_before_job_closed_s) == (900, 0)
    assert campus.reconsider_s == 3600
    assert {made.told(spec)[1:] for spec in campus.clusters} == {("always", 3600, 900)}


def test_a_cluster_may_have_sleep_times_of_its_own(tmp_path: Path) -> None:
    site = "sleep_after_open_s = 60\n[clusters.lab]\nsleep_after_closed_s = inf\n"
    lab, hall = read_campus(made.write_sample(tmp_path, site=site)).clusters
    assert made.told(lab) == ("lab", "always", 60, float("inf"))
    assert made.told(hall) == ("hall", "always", 60, 900)


def test_a_site_may_reboot_never(tmp_path: Path) -> None:
    assert read_campus(made.write_sample(tmp_path, site='reboot = "never"')).reboot_s is None


def test_rows_in_any_order_are_sorted_by_time_and_ties_keep_theirs(tmp_path: Path) -> None:
    owners = "machine,login_s,logout_s\nm1,9,10\nm0,5,6\nm1,5,7\n"
    jobs = "job,submit_s,run_s,kill_s,user,vo\nz,7,1,,u,v\ny,3,2,,u,v\nx,7,3,,w,v\n"
    campus = read_campus(made.write_sample(tmp_path, owners=owners, jobs=jobs))
    assert campus.login_s.tolist() == [5, 5, 9]
    assert campus.session_machine.tolist() == [0, 1, 1]
    assert campus.job_names == ["y", "z", "x"]
    assert campus.run_s.tolist() == [2, 1, 3]
    assert [user for user, _ in made.users(campus)] == ["u", "u", "w"]


def test_overlapping_sessions_are_kept_as_they_are(tmp_path: Path) -> None:
    owners = "machine,login_s,logout_s\nm0,0,100\nm0,50,70\nm0,60,200\n"
    campus = read_campus(made.write_sample(tmp_path, owners=owners))
    assert campus.logout_s.tolist() == [100, 70, 200]
    assert campus.skipped == {}


def test_columns_may_stand_in_any_order_beside_others(tmp_path: Path) -> None:
    owners = "logout_s,note,machine,login_s\n200,a long note that nobody needs,m0,100\n"
    campus = read_campus(made.write_sample(tmp_path, owners=owners))
    assert (campus.login_s.tolist(), campus.logout_s.tolist()) == ([100], [200])


@pytest.mark.parametrize("width", [23, 24, 25, 95, 96, 97, 500])
def test_long_names_are_not_cut(tmp_path: Path, width: int) -> None:
    name = "x" * width
    jobs = made.TABLES["jobs.csv"] + f"{name}1,30,1,,{name}2,{name}3\n"
    campus = read_campus(made.write_sample(tmp_path, jobs=jobs))
    assert campus.job_names[-1] == f"{name}1"
    assert made.users(campus)[-1] == (f"{name}2", f"{name}3")


@pytest.mark.parametrize(
    ("field", "name"), [('"x, y"', "x, y"), ("λ", "λ"), ('"said ""so"""', 'said "so"'), ("é", "é")]
)
def test_names_may_be_quoted_or_in_any_script(tmp_path: Path, field: str, name: str) -> None:
    jobs = made.TABLES["jobs.csv"] + f"{field},30,1,,{field},v\n"
    campus = read_campus(made.write_sample(tmp_path, jobs=jobs))
    assert campus.job_names[-1] == name
    assert made.users(campus)[-1] == (name, "v")
    made.assert_equal_but_last_job(campus, read_campus(made.write_sample(tmp_path)))


def test_blank_lines_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    plain = read_campus(made.write_sample(tmp_path))
    owners = "\ufeff" + made.TABLES["owners.csv"].replace("\n", "\r\n\r\n")
    made.assert_equal(read_campus(made.write_sample(tmp_path, owners=owners)), plain)


def test_a_campus_without_owners_and_jobs_is_a_campus(tmp_path: Path) -> None:
    headers = {name: made.TABLES[f"{name}.csv"].partition("\n")[0] for name in ("owners", "jobs")}
    campus = read_campus(made.write_sample(tmp_path, **headers))
    assert (len(campus.login_s), len(campus.job_names)) == (0, 0)


@pytest.mark.parametrize("gz", [False, True])
def test_a_generated_campus_is_read_back_as_it_was(tmp_path: Path, gz: bool) -> None:
    campus = generate_campus(5, weeks=3, machines=80, clusters=5)
    write_campus(campus, tmp_path / "made" / "here", gz=gz)
    names = {path.name for path in (tmp_path / "made" / "here").iterdir()}
    end = ".gz" if gz else ""
    assert names == {"site.toml", f"machines.csv{end}", f"owners.csv{end}", f"jobs.csv{end}"}
    made.assert_equal(read_campus(tmp_path / "made" / "here"), campus)


@settings(max_examples=examples(60))
@given(campus=made.campuses())
def test_any_campus_is_read_back_as_it_was(campus: Campus) -> None:
    with tempfile.TemporaryDirectory() as folder:
        write_campus(campus, Path(folder))
        made.assert_equal(read_campus(Path(folder)), campus)


def test_the_same_campus_gives_the_same_bytes(tmp_path: Path) -> None:
    campus = generate_campus(5, weeks=1, machines=20, clusters=2)
    for folder in ("one", "other"):
        write_campus(campus, tmp_path / folder, gz=True)
    for path in (tmp_path / "one").iterdir():
        assert path.read_bytes() == (tmp_path / "other" / path.name).read_bytes()


def test_a_file_may_be_gzipped_whatever_its_name(tmp_path: Path) -> None:
    plain = read_campus(made.write_sample(tmp_path))
    for name in ("owners.csv", "site.toml"):
        packed = gzip.compress((tmp_path / name).read_bytes())
        (tmp_path / name).unlink()
        (tmp_path / f"{name}.gz").write_bytes(packed)
    made.assert_equal(read_campus(tmp_path), plain)
    (tmp_path / "owners.csv.gz").rename(tmp_path / "owners.csv")
    made.assert_equal(read_campus(tmp_path), plain)


def test_writing_never_leaves_two_spellings_of_a_table(tmp_path: Path) -> None:
    campus = read_campus(made.write_sample(tmp_path))
    with pytest.raises(ConfigurationError, match=r"machines\.csv: is in the way"):
        write_campus(campus, tmp_path, gz=True)


def test_a_reboot_at_half_a_second_cannot_be_written(tmp_path: Path) -> None:
    campus = read_campus(made.write_sample(tmp_path))
    campus.reboot_s = 10.5
    with pytest.raises(ConfigurationError, match=r"reboot_s = 10\.5: expected a whole"):
        write_campus(campus, tmp_path)


def test_a_full_year_of_another_hand_is_read_quickly(
    shared: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    began = time.process_time()
    campus = read_campus(shared / "data" / "campus1")
    took_s = time.process_time() - began
    with capsys.disabled():
        sys.stdout.write(f"\ncampus1 read in {took_s:.2f} s of processor time\n")
    assert (len(campus.machine_names), len(campus.clusters)) == (1_359, 37)
    assert (len(campus.login_s), len(campus.job_names)) == (1_229_467, 532_467)
    assert int(np.isnan(campus.run_s).sum()) == 131_909
    assert took_s < 30  # generous: a busy machine; on an idle core it takes about 1.5 s
