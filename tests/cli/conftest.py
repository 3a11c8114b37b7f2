"""A small campus that the real command made, and a real daemon beside a simulated one."""

import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.running import COMMAND, WITHIN_S, get, outrider


@pytest.fixture(scope="session")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A week of 40 machines in term: about 250 jobs, with evictions."""
    folder = tmp_path_factory.mktemp("campus") / "small"
    done = outrider(
        "generate", "campus", "--seed", 3, "--weeks", 1, "--machines", 40, "--clusters", 3,
        "--start", "2010-03-01", "--out", folder,
    )  # fmt: skip
    assert done.code == 0, done
    return folder


@pytest.fixture(scope="session")
def recorded(campus: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A ledger that a replay wrote, and the replay's run object."""
    file = tmp_path_factory.mktemp("ledger") / "run.sqlite"
    done = outrider("replay", campus, "--policy", "bandit", "--ledger", file, "--json")
    return file, done.json()["runs"][0]


@pytest.fixture
def without_bindings(tmp_path: Path) -> Path:
    """A folder for PYTHONPATH that makes HTCondor's Python bindings a package not installed."""
    folder = tmp_path / "without-bindings"
    folder.mkdir()
    (folder / "htcondor2.py").write_text(
        "raise ModuleNotFoundError(\"No module named 'htcondor2'\")\n"
    )
    return folder


def _wait_for_decisions(url: str) -> None:
    """Wait for the demo's first decisions; the page answers before its two weeks are replayed.

    A job is seen a moment before what was decided on it can be read in the ledger.
    """
    deadline = time.monotonic() + WITHIN_S
    while not get(f"{url}/api/v1/decisions?limit=1")["decisions"]:
        assert time.monotonic() < deadline, "nothing was decided"
        time.sleep(0.05)


@pytest.fixture(scope="module")
def demo_url() -> Iterator[str]:
    """The address of a running `outrider demo`: a real daemon beside a simulated campus."""
    demo = subprocess.Popen(
        [COMMAND, "demo", "--machines", "30", "--weeks", "4", "--for", "120"],
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    with demo:
        assert demo.stdout is not None
        try:
            url = demo.stdout.readline().strip().removeprefix("Open ")
            _wait_for_decisions(url)
            yield url
        finally:
            demo.send_signal(signal.SIGTERM)
            demo.wait(WITHIN_S)
