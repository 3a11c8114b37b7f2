"""Runs that are done outlive a reproduction that is stopped."""

from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

from outrider.cli.commands.reproduce import command
from outrider.lab.cells import Cell, GeneratedCampus
from outrider.lab.kept_runs import RUNS_FILE, KeptRun, KeptRuns
from outrider.model.errors import ConfigurationError

CAMPUS = GeneratedCampus(3, (("weeks", 1.0), ("machines", 12), ("clusters", 2)))
CELLS = [Cell(CAMPUS, "random_match", seed=seed) for seed in range(3)]


def run(folder: Path, *, resume: bool, cells: list[Cell] = CELLS) -> dict[int, dict[str, object]]:
    """What all cells bring."""
    with KeptRuns(folder, resume) as kept:
        return {end.number: end.result for end in kept.ends(cells, 1, lambda cell: cell.trace)}


def lines(folder: Path) -> list[KeptRun]:
    """What is kept."""
    kept = (folder / RUNS_FILE).read_bytes().splitlines()
    return [msgspec.json.decode(line, type=KeptRun) for line in kept]


def test_a_run_that_is_kept_is_not_made_again(tmp_path: Path) -> None:
    run(tmp_path, resume=False, cells=CELLS[1:2])
    (first,) = lines(tmp_path)
    marked = KeptRun(first.cell, first.version, {"marked": True})
    (tmp_path / RUNS_FILE).write_bytes(msgspec.json.encode(marked) + b"\n")
    results = run(tmp_path, resume=True)
    assert results[1] == {"marked": True}
    assert {results[n]["seed"] for n in (0, 2)} == {0, 2}
    assert sorted(kept.cell for kept in lines(tmp_path)) == sorted(str(cell) for cell in CELLS)


def test_a_last_line_cut_off_by_a_kill_is_run_again(tmp_path: Path) -> None:
    whole = run(tmp_path, resume=False)
    path = tmp_path / RUNS_FILE
    path.write_bytes(path.read_bytes()[:-40])
    resumed = run(tmp_path, resume=True)
    hashes = [{n: r["ledger_sha256"] for n, r in results.items()} for results in (whole, resumed)]
    assert hashes[0] == hashes[1]
    assert len(lines(tmp_path)) == len(CELLS)


def test_runs_are_there_and_nobody_said_resume(tmp_path: Path) -> None:
    run(tmp_path, resume=False)
    with pytest.raises(ConfigurationError, match=r"runs\.jsonl: .*--resume"):
        run(tmp_path, resume=False)
    assert len(lines(tmp_path)) == len(CELLS)


@pytest.mark.parametrize(
    ("line", "told"),
    [(b"{}", "missing required field"), (b"{", "truncated"),
     (msgspec.json.encode(KeptRun(str(CELLS[0]), "0.0", {})), "made by Outrider 0.0")],
)  # fmt: skip
def test_what_cannot_be_gone_on_with_is_refused_by_its_line(
    tmp_path: Path, line: bytes, told: str
) -> None:
    (tmp_path / RUNS_FILE).write_bytes(line + b"\n")
    with pytest.raises(ConfigurationError, match=rf"runs\.jsonl:1: .*{told}"):
        run(tmp_path, resume=True)


def test_a_report_that_is_done_keeps_none(tmp_path: Path) -> None:
    with KeptRuns(tmp_path, resume=False) as kept:
        list(kept.ends(CELLS[:1], 1, lambda cell: cell.trace))
        kept.done()
    assert list(tmp_path.iterdir()) == []


def test_resume_needs_a_report() -> None:
    ran = CliRunner().invoke(command, ["mcgough", "--quick", "--resume"])
    assert ran.exit_code == 2
    assert "--report DIR" in ran.output
