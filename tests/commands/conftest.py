"""A small campus that the real command made, and a real daemon beside a simulated one."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands.running import COMMAND, WITHIN_S, outrider


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
            yield demo.stdout.readline().strip()
        finally:
            demo.send_signal(signal.SIGTERM)
            demo.wait(WITHIN_S)
