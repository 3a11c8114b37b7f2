"""Small VOs as one, by what their users asked for."""

from pathlib import Path

import pytest

from outrider.formats.swf.reading import OTHER, read_swf
from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row

MANY = "; MaxProcs: 4\n"


def vos(folder: Path, *lines: str, below: float) -> list[str]:
    return list(read_swf(file_of(folder, *lines, header=MANY), group_vos_below=below).vo)


def asked(job: int, vo: int, requested_s: int, cpus: int = 1, run_s: int = 10) -> str:
    return row(job, 10 * job, run_s, cpus, time_asked=requested_s, group=vo)


def test_vos_below_the_share_are_one(tmp_path: Path) -> None:
    lines = [asked(1, 1, 700), asked(2, 2, 100, 2), asked(3, 3, 60), asked(4, 4, 40)]
    assert vos(tmp_path, *lines, below=0.0) == ["1", "2", "3", "4"]
    assert vos(tmp_path, *lines, below=0.07) == ["1", "2", OTHER, OTHER]
    assert vos(tmp_path, *lines, below=0.2) == ["1", "2", OTHER, OTHER]  # 2 has a fifth, not less


def test_how_long_jobs_really_ran_makes_no_difference(tmp_path: Path) -> None:
    short = [asked(n, n, 1000 // n, run_s=1) for n in range(1, 6)]
    long = [asked(n, n, 1000 // n, run_s=999 * n) for n in range(1, 6)]
    grouped = vos(tmp_path, *short, below=0.15)
    assert grouped == vos(tmp_path, *long, below=0.15)
    assert 1 < len(set(grouped)) < 5


def test_without_requests_cpus_count_and_one_without_counts_as_the_mean(tmp_path: Path) -> None:
    none = [asked(1, 1, -1, 4), asked(2, 2, -1, 1)]
    assert vos(tmp_path, *none, below=0.3) == ["1", OTHER]
    some = [asked(1, 1, 900), asked(2, 2, 100), asked(3, 3, -1)]  # 900, 100 and 500
    assert vos(tmp_path, *some, below=0.1) == ["1", OTHER, "3"]


def test_fairness_over_many_equal_vos_says_something_once_they_are_grouped(tmp_path: Path) -> None:
    lines = [asked(n, n if n > 20 else 0, 100 if n > 20 else 5000) for n in range(60)]
    trace = file_of(tmp_path, *lines, header=MANY)
    said = outrider("replay", trace, "--policy", "fifo")
    assert "fairness is degenerate: 40 VOs" in said.out
    assert "--group-vos-below" in said.out
    words = ("replay", trace, "--policy", "fifo", "--group-vos-below", 0.01)
    assert "degenerate" not in outrider(*words).out
    told = outrider(*words, "--json").json()["runs"][0]
    assert set(told["fairness"]["target"]) == {"0", OTHER}
    assert told["group_vos_below"] == 0.01


@pytest.mark.parametrize("ratio", ["-0.1", "1.5", "nan"])
def test_what_is_no_share_is_refused(tmp_path: Path, ratio: str) -> None:
    trace = file_of(tmp_path, asked(1, 1, 100), header=MANY)
    done = outrider("replay", trace, "--policy", "fifo", f"--group-vos-below={ratio}")
    assert done.code == 2
    assert f"--group-vos-below {ratio}: expected a share from 0 to 1" in done.err
