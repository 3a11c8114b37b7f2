"""Every result says what made it: release, command, moment, and the bytes of the traces."""

import datetime as dt
import hashlib
import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from outrider import __version__
from outrider.formats.digests import trace_sha256
from outrider_lab.papers.vengerov.grid import Size
from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row
from tests.lab.swept import ONE_TRACE, rows_of, write_sweep


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """A workload file with requests."""
    rows = [row(n, 30.0 * n, 60.0 + n, time_asked=600.0) for n in range(40)]
    return file_of(tmp_path, *rows, header="; MaxProcs: 2\n")


def sha256_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def assert_says_how(told: dict[str, Any], words: list[object], trace: Path | None) -> None:
    """Check release, command, time, and the trace with its digest if there is one."""
    assert told["version"] == __version__
    assert shlex.split(told["command"]) == ["outrider", *map(str, words)]
    made = dt.datetime.fromisoformat(told["date"])
    assert abs(dt.datetime.now(dt.UTC) - made) < dt.timedelta(minutes=10)
    named = [(one["path"], one["sha256"]) for one in told["traces"]]
    assert named == ([] if trace is None else [(str(trace), sha256_of(trace))])


@pytest.mark.parametrize(
    "words",
    [
        ["replay", "TRACE", "--policy", "fifo", "--json"],
        ["compare", "TRACE", "--policy", "edf", "--runs", "FILE", "--json"],
        ["estimate", "TRACE", "--json"],
    ],
    ids=lambda words: words[0],
)
def test_what_reads_traces_names_them_by_their_bytes(
    words: list[object], trace: Path, tmp_path: Path
) -> None:
    places = {"TRACE": trace, "FILE": tmp_path / "its runs.jsonl"}
    asked = [places.get(str(word), word) for word in words]
    assert_says_how(outrider(*asked).json(), asked, trace)


def test_a_reproduction_says_so_in_its_json_and_on_its_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("outrider_lab.papers.vengerov.grid.QUICK", Size(True, 100, 150, (0.1,)))
    report = tmp_path / "report"
    asked: list[object] = ["reproduce", "vengerov", "--quick", "--seeds", "0-0", "--report", report]
    assert outrider(*asked).code in (0, 1)
    result = json.loads((report / "result.json").read_text())
    assert_says_how(result, asked, None)
    page = (report / "index.html").read_text()
    assert f"Outrider {__version__}, {result['date']}: outrider reproduce vengerov" in page


def test_a_sweep_says_so_in_every_row(tmp_path: Path) -> None:
    out = tmp_path / "results.json"
    file = write_sweep(tmp_path, ONE_TRACE + '[[policies]]\nname = "fifo"\n')
    asked: list[object] = ["sweep", file, "--out", out, "--workers", 1, "--json"]
    told = outrider(*asked).json()
    assert_says_how(told, asked, None)
    (only,) = rows_of(out)
    assert (only["command"], only["date"]) == (told["command"], told["date"])
    assert only["trace_sha256"] is None  # drawn from the seed that the row names


def test_the_digest_of_a_campus_is_of_its_files_and_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "campus"
    folder.mkdir()
    (folder / "jobs.csv").write_text("a")
    (folder / "site.toml").write_text("b")
    first = trace_sha256(folder)
    (folder / "notes.txt").write_text("no part of it")
    assert trace_sha256(folder) == first
    (folder / "jobs.csv").rename(folder / "owners.csv")
    assert trace_sha256(folder) != first
