"""Killed commands resume, and give the result of an undisturbed one."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from outrider.formats.swf.table import write_swf
from outrider.simulation.generators.grids.workloads import perez_grid
from outrider_lab.comparison.comparison import PUBLISHED
from tests.cli.running import COMMAND, WITHIN_S, interruptible, outrider, shell
from tests.lab.swept import install_policies

pytestmark = pytest.mark.timeout(900)  # a busy machine takes its time

OF_ONE_START = {"cpu_s", "wall_s", "max_rss_mb", "decision_s", "command", "date"}
"""Fields that differ between starts: clock times, and the call of the command."""


@pytest.fixture
def grid(tmp_path: Path) -> Path:
    """A workload file that a policy takes a moment for."""
    path = tmp_path / "grid.swf"
    write_swf(perez_grid(0.4, seed=3, jobs=700, machines=20, load=1.0), path, {"MaxProcs": "20"})
    return path


def timeless(told: Any) -> Any:
    """Return a result without the fields that differ between starts of a command."""
    if isinstance(told, dict):
        return {k: timeless(v) for k, v in told.items() if not k.startswith(tuple(OF_ONE_START))}
    return [timeless(one) for one in told] if isinstance(told, list) else told


def stop(words: list[object], kept: Path, how: signal.Signals) -> int:
    """Begin a command and stop it when two runs are kept; returns how many are."""
    command = [str(word) for word in (COMMAND, *words)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running:
        deadline_s = time.monotonic() + WITHIN_S
        while not kept.exists() or kept.read_bytes().count(b"\n") < 2:
            assert time.monotonic() < deadline_s, "no run was kept"
            assert running.poll() is None, "the command ended before it could be stopped"
            time.sleep(0.005)
        running.send_signal(how)
    return kept.read_bytes().count(b"\n")


def commands(grid: Path) -> dict[str, list[object]]:
    return {
        "a reproduction": ["reproduce", "automata", "--quick", "--seeds", "1-1"],
        "a comparison": ["compare", grid, "--policy", "edf", "--seeds", "0-1"],
        "drift": ["drift", "--quick", "--world", "load step", "--seeds", "0-1"],
    }


@pytest.mark.parametrize("name", ["a reproduction", "a comparison"])
def test_what_was_killed_goes_on_and_tells_what_an_undisturbed_one_tells(
    name: str, grid: Path, tmp_path: Path
) -> None:
    words = [*commands(grid)[name], "--workers", 1, "--json"]
    kept = tmp_path / "kept.jsonl"
    done = stop([*words, "--runs", kept], kept, signal.SIGKILL)
    with kept.open("ab") as file:
        file.write(b'{"key": "half a li')
    refused = outrider(*words, "--runs", kept)
    assert (refused.code, refused.out) == (2, "")
    assert f"holds {done} finished runs" in refused.err
    begun = kept.read_text().splitlines()[0]
    resumed = outrider(*words, "--runs", kept, "--resume")
    assert resumed.code == 0, resumed
    assert timeless(json.loads(resumed.out)) == timeless(outrider(*words).json())
    assert json.loads(begun)["attempts"] == 1
    assert not kept.exists(), "what is told need not be kept"


def test_runs_that_are_kept_are_not_run_again(grid: Path, tmp_path: Path) -> None:
    words = [*commands(grid)["a comparison"], "--workers", 1, "--json"]
    kept = tmp_path / "kept.jsonl"
    stop([*words, "--runs", kept], kept, signal.SIGKILL)
    lines = kept.read_bytes().splitlines(keepends=True)
    marked = json.loads(lines[0])
    marked["result"]["report"]["utilisation_ratio"] = 7.0
    kept.write_bytes(json.dumps(marked).encode() + b"\n" + b"".join(lines[1:]))
    told = outrider(*words, "--runs", kept, "--resume").json()
    assert 3.0 < told["traces"][0]["policies"][0]["utilisation_ratio"] < 4.5, "a mean of two seeds"


def test_without_any_option_a_stopped_command_finds_its_own_runs(
    grid: Path, state_folder: Path
) -> None:
    words = [*commands(grid)["drift"], "--workers", 1, "--json"]
    command = [str(word) for word in (COMMAND, *words)]
    with (
        interruptible(),
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as running,
    ):
        deadline_s = time.monotonic() + WITHIN_S
        while sum(f.read_bytes().count(b"\n") for f in state_folder.rglob("drift-*.jsonl")) < 2:
            assert time.monotonic() < deadline_s, "no run was kept"
            time.sleep(0.005)
        running.send_signal(signal.SIGINT)
        _, err = running.communicate(timeout=WITHIN_S)
    assert running.returncode == 130
    (kept,) = state_folder.rglob("drift-*.jsonl")
    assert str(kept) in err.decode()
    assert "--resume" in err.decode()
    other = outrider(*commands(grid)["drift"], "--workers", 1, "--seeds", "4-4", "--json")
    assert other.code == 0, "another command has another file"
    again = outrider(*words, "--resume")
    assert again.code == 0, again
    assert timeless(again.json()) == timeless(outrider(*words).json())
    assert list(state_folder.rglob("*.jsonl")) == []


def test_a_policy_that_fails_is_named_and_the_others_are_compared(
    grid: Path, tmp_path: Path, state_folder: Path
) -> None:
    environment = install_policies(tmp_path / "plugins")
    words = ["compare", grid, "--policy", "clueless", "--policy", "edf", "--workers", 1, "--json"]
    done = shell(*words, **environment)
    assert done.code == 1
    told = json.loads(done.out)
    assert [one["policy"] for one in told["traces"][0]["policies"]] == [
        *PUBLISHED, "edf",
    ]  # fmt: skip
    assert "out of ideas" in told["failed"][0]["error"]
    assert "failed: clueless, seed 0, on " in done.err
    (kept,) = state_folder.rglob("compare-*.jsonl")
    assert len(kept.read_text().splitlines()) == len([*PUBLISHED, "edf"])
    again = shell(*words, "--resume", **environment)
    assert again.code == 1
    assert timeless(json.loads(again.out)) == timeless(told)


def test_a_folder_where_nothing_can_be_kept_is_told_before_anything_runs(grid: Path) -> None:
    blocked = grid.parent / "blocked"
    blocked.write_text("")
    done = shell("drift", "--quick", XDG_STATE_HOME=str(blocked))
    assert done.code == 2
    assert "expected --runs FILE" in done.err
