"""`outrider sweep` on workload files: axes, windows, resuming, and what is said with intervals."""

import gzip
import json
from math import isclose, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest

from outrider.model.errors import OutriderError
from outrider_lab.running.traces import WorkloadWindow, workload_of
from outrider_lab.sweep.file import read_sweep
from tests.cli.running import outrider
from tests.fixtures.workload_files import HEADER, file_of, row
from tests.lab.swept import measured, rows_of, write_sweep

SHARED = Path(__file__).parents[3] / "shared" / "data" / "swf" / "windows"
DAY = 86_400
POLICIES = '[[policies]]\nname = "fifo"\n[[policies]]\nname = "sjf"\n'
GRID = (
    """\
seeds = [0, 1]

[[traces]]
workload = ["a.swf", "b.swf"]
windows = { days = 1, count = 2 }
estimates = ["requested", "lognormal:0.5"]
discipline = ["easy", "easy_sjbf"]
class_by = ["requested:100", "none"]
machines = [4, 6]
"""
    + POLICIES
)
ONE = '[[traces]]\nworkload = "a.swf"\n' + POLICIES
GRID_CELLS = 2 * 2 * 2 * 2 * 2 * 2 * 2 * 2


def desk(folder: Path, name: str, more: int = 0, header: str = HEADER) -> Path:
    """Return two days of jobs that wait: a wide one, then some that may pass."""
    rows = [
        row(
            day * 100 + n, day * DAY + n * 10, 60 + (n * 37 + day * 71 + more) % 240,
            3 if n % 4 == 0 else 4 if n % 4 == 1 else 1,
            time_asked=400 - (n * 53 + day * 29 + more) % 200, user=1 + n % 3, group=1 + n % 2,
        )
        for day in range(3) for n in range(1, 13)
    ]  # fmt: skip
    return file_of(folder, *rows, name=name, header=header)


def two_files(folder: Path, text: str = GRID) -> Path:
    """A sweep of two small files."""
    desk(folder, "a.swf")
    desk(folder, "b.swf", more=11)
    return write_sweep(folder, text)


def test_every_axis_multiplies_and_windows_hold_what_came_within_them(tmp_path: Path) -> None:
    specs = read_sweep(two_files(tmp_path)).specs
    assert len(specs) == len({spec.key for spec in specs}) == GRID_CELLS
    traces = dict.fromkeys(spec.trace for spec in specs)
    assert [trace.name for trace in traces][:2] == ["a.swf days 0 to 1", "a.swf days 1 to 2"]
    for trace in traces:
        assert isinstance(trace, WorkloadWindow)
        jobs = workload_of(trace)
        whole = workload_of(trace.file)
        after_d = (whole.submit_s - whole.submit_s[0]) / DAY
        inside = (after_d >= trace.first_day) & (after_d < trace.first_day + trace.days)
        assert jobs.submit_s.tolist() == whole.submit_s[inside].tolist()
        names = [name for name, is_in in zip(whole.job_names, inside, strict=True) if is_in]
        assert jobs.job_names == names
        assert jobs.skipped == {"outside the window": 24}


def test_a_row_is_the_run_of_replay_under_the_same_options(tmp_path: Path) -> None:
    text = '[[traces]]\nworkload = "a.swf"\nestimates = "lognormal:0.5"\ndiscipline = "easy_sjbf"\n'
    file = two_files(tmp_path, text + 'class_by = "truth:100"\nmachines = 5\n' + POLICIES)
    out = tmp_path / "r.json"
    assert outrider("sweep", file, "--out", out, "--workers", 1).code == 0
    words = ("--estimates", "lognormal:0.5", "--discipline", "easy_sjbf", "--class-by", "truth:100")
    replayed = outrider(
        "replay", tmp_path / "a.swf", "--policy", "fifo", "--policy", "sjf", *words,
        "--machines", 5, "--json",
    ).json()["runs"]  # fmt: skip
    for swept, run in zip(rows_of(out), replayed, strict=True):
        assert swept["ledger_sha256"] == run["ledger_sha256"]
        assert swept["wait_s.all.mean"] == run["wait_s"]["all"]["mean"] > 0
        assert swept["truth"] == "; ".join(run["truth"]) != ""
        for name in ("policy", "seed", "estimates", "discipline", "class_source", "cpus"):
            assert swept[name] == run[name]


def test_where_nothing_was_declared_the_truth_is_said_everywhere(tmp_path: Path) -> None:
    file_of(tmp_path, *(row(n, n * 10, 50, 4) for n in range(1, 5)), name="bare.swf")
    file = write_sweep(tmp_path, '[[traces]]\nworkload = "bare.swf"\n' + POLICIES)
    out, plot = tmp_path / "r.json", tmp_path / "r.svg"
    done = outrider("sweep", file, "--out", out, "--workers", 1, "--plot", plot)
    told = "estimates are the true run times (exact)"
    assert [r["truth"] for r in rows_of(out)] == [told] * 2
    assert f"TRUE RUN TIMES USED: {told}: fifo, strict; sjf, strict" in done.out
    assert "TRUE RUN TIMES USED" in plot.read_text()
    again = outrider("sweep", file, "--out", out, "--resume", "--json").json()
    assert {t["truth"] for one in again["comparison"] for t in one["treatments"]} == {told}
    word = write_sweep(
        tmp_path, '[[traces]]\nworkload = "bare.swf"\nestimates = "requested"\n' + POLICIES
    )
    with pytest.raises(OutriderError, match=r"no user of bare\.swf requested a run time"):
        read_sweep(word)


def test_differences_are_paired_by_window_after_seeds_are_averaged(tmp_path: Path) -> None:
    text = GRID.replace("machines = [4, 6]\n", "").replace(
        'class_by = ["requested:100", "none"]\n', ""
    )
    out = tmp_path / "r.json"
    told = outrider(
        "sweep", two_files(tmp_path, text), "--out", out, "--workers", 2, "--json"
    ).json()  # fmt: skip
    (one,) = (o for o in told["comparison"] if o["figure"] == "wait_s.all.mean")
    assert one["unit"] == "a window of a workload file (the mean of its 2 seeds)"
    assert one["baseline"] == "fifo, easy, requested"
    by_name = {t["treatment"]: t for t in one["treatments"]}
    assert len(by_name) == 8
    ours = by_name["sjf, easy_sjbf, lognormal:0.5"]
    pairs = []
    for window in dict.fromkeys(r["trace"] for r in rows_of(out)):
        here = [r for r in rows_of(out) if r["trace"] == window]
        pairs.append(
            mean_of(here, "sjf", "lognormal:0.5", "easy_sjbf")
            - mean_of(here, "fifo", "requested", "easy")
        )
    assert ours["pairs"] == len(pairs) == 4
    reach = 3.182 * stdev(pairs) / sqrt(4)  # Student's t, 3 degrees of freedom
    assert isclose(ours["difference"], fmean(pairs))
    assert ours["interval"] == pytest.approx([fmean(pairs) - reach, fmean(pairs) + reach], rel=1e-3)
    assert by_name["fifo, easy, requested"]["verdict"] is None


def mean_of(rows: list[dict[str, Any]], policy: str, estimates: str, discipline: str) -> float:
    """The mean over seeds of the mean wait."""
    found = [
        r["wait_s.all.mean"] for r in rows
        if (r["policy"], r["estimates"], r["discipline"]) == (policy, estimates, discipline)
    ]  # fmt: skip
    assert len(found) == 2
    return fmean(found)


def test_one_trace_gives_no_interval_however_many_seeds(tmp_path: Path) -> None:
    text = 'seeds = [0, 1, 2]\n[[traces]]\nworkload = "a.swf"\n' + POLICIES
    file, out = two_files(tmp_path, text), tmp_path / "r.json"
    told = outrider("sweep", file, "--out", out, "--workers", 1, "--json").json()
    for one in told["comparison"]:
        _, sjf = one["treatments"]
        assert (sjf["pairs"], sjf["runs"], sjf["interval"]) == (1, 3, None)
        assert sjf["verdict"] == "too small"


def test_options_replace_the_axes_of_the_file_and_a_sweep_goes_on_where_it_grew(
    tmp_path: Path,
) -> None:
    text = '[[traces]]\nworkload = "a.swf"\ndiscipline = "strict"\n' + POLICIES
    file, out = two_files(tmp_path, text), tmp_path / "r.json"
    words = ("--out", out, "--workers", 1, "--json", "--estimates", "exact")
    first = outrider("sweep", file, *words, "--discipline", "easy").json()
    assert (first["cells"], first["kept"]) == (2, 0)
    before = measured(rows_of(out))
    both = ("--discipline", "easy", "--discipline", "easy_sjbf", "--machines", 4, "--resume")
    refused = outrider("sweep", file, *words, *both)
    assert refused.code == 2, "with the machines said, these are other runs"
    grown = outrider("sweep", file, *words, *both[:4], "--resume").json()
    assert (grown["cells"], grown["kept"]) == (4, 2)
    assert measured(rows_of(out))[:2] == before
    desk(tmp_path, "a.swf", more=5)
    changed = outrider("sweep", file, *words, *both[:4], "--resume")
    assert changed.code == 2
    assert "from a trace that has changed since" in changed.err


def test_gzipped_files_and_dask_bring_the_same(tmp_path: Path) -> None:
    text = '[[traces]]\nworkload = "a.swf.gz"\nwindows = { days = 1 }\ndiscipline = ["easy"]\n'
    file = two_files(tmp_path, text + POLICIES)
    (tmp_path / "a.swf.gz").write_bytes(gzip.compress((tmp_path / "a.swf").read_bytes()))
    words = ("--cluster", "local-dask", "--workers", 1)
    assert outrider("sweep", file, "--out", tmp_path / "dask.json", *words).code == 0
    assert outrider("sweep", file, "--out", tmp_path / "here.json", "--workers", 1).code == 0
    assert measured(rows_of(tmp_path / "dask.json")) == measured(rows_of(tmp_path / "here.json"))


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ('workload = "away.swf"', "away.swf cannot be read: No such file"),
        ("workload = []", '"workload"'),
        ('workload = "a.swf"\ndiscipline = "fast"', '"discipline" = "fast"'),
        ('workload = "a.swf"\nestimates = "guessed"', 'estimates "guessed": no such rule'),
        ('workload = "a.swf"\nestimates = []', "estimates = [] leaves no run"),
        ('workload = "a.swf"\nclass_by = "mood:3"', 'class_by "mood:3": no such rule'),
        ('workload = "a.swf"\nmachines = 0', '"machines" = 0'),
        ('workload = "a.swf"\nmachine = 4', 'unknown setting "machine"; did you mean "machines"?'),
        ('workload = "a.swf"\nwindows = { days = 9 }', "in which 0 such windows lie"),
        ('workload = "a.swf"\nwindows = { days = 0 }', '"windows.days" = 0'),
        ('workload = "a.swf"\ngenerated = [1]', "expected either folder"),
        ('generated = [1]\ndiscipline = "easy"', "discipline is for workload files"),
        ('workload = "bad.swf"', "bad.swf"),
    ],
)
def test_what_is_wrong_is_refused_before_anything_runs(
    more: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "bad.swf").write_text(HEADER + "1 2 three\n")
    file = two_files(tmp_path, f"[[traces]]\n{more}\n" + POLICIES)
    with pytest.raises(OutriderError) as refused:
        read_sweep(file)
    assert message in str(refused.value)
    assert str(refused.value).startswith(f"{file} [[traces]] 1")


def test_words_that_do_not_fit_the_sweep_are_refused(tmp_path: Path) -> None:
    file, out = two_files(tmp_path), tmp_path / "r.json"
    for words, message in (
        (("--baseline", "edf"), "--baseline edf: not in this sweep"),
        (("--plot", tmp_path / "r.png"), "expected it to end in .svg"),
    ):
        done = outrider("sweep", file, "--out", out, *words)
        assert (done.code, message in done.err) == (2, True)
    assert not out.exists()
    done = outrider("sweep", two_files(tmp_path, ONE), "--out", out, "--figure", "wait_s.all.men")
    assert (done.code, 'did you mean "wait_s.all.mean"' in done.err) == (2, True)
    out.unlink()
    campus = write_sweep(tmp_path, "[[traces]]\ngenerated = [1]\nweeks = 1\n" + POLICIES)
    done = outrider("sweep", campus, "--out", out, "--estimates", "exact")
    assert (done.code, "has no workload file to run with it" in done.err) == (2, True)


def test_a_real_log_in_windows(tmp_path: Path) -> None:
    log = SHARED / "LCG-UK-10d-P120.swf.gz"
    if not log.is_file():
        pytest.skip(f"no workload files of the Parallel Workloads Archive: {SHARED} is not there")
    text = f"[[traces]]\nworkload = {json.dumps(str(log))}\nwindows = {{ days = 1, count = 2 }}\n"
    file, out = write_sweep(tmp_path, text + POLICIES), tmp_path / "r.json"
    told = outrider("sweep", file, "--out", out, "--workers", 1, "--json").json()
    assert told["failed"] == []
    rows = rows_of(out)
    assert [(r["first_day"], r["policy"]) for r in rows] == [
        (0.0, "fifo"), (0.0, "sjf"), (1.0, "fifo"), (1.0, "sjf"),
    ]  # fmt: skip
    assert all(r["truth"] == "" and r["jobs.completed"] > 100 for r in rows)
