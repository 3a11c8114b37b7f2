"""Slurm of three different nodes for every module of tests here."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.beside_slurm.watched import submit, unlike_nodes
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm, missing_reason


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the jobs' script."""
    return tmp_path_factory.mktemp("slurm")


@pytest.fixture(scope="module")
def slurm(folder: Path) -> Iterator[Slurm]:
    """Provide a Slurm of three different nodes, found by its commands in the environment."""
    require_peer("Slurm", missing_reason())
    with unlike_nodes(folder) as running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("SLURM_TIME_FORMAT", "%s")
        yield running


@pytest.fixture(autouse=True)
def emptied(slurm: Slurm) -> Iterator[None]:
    """Remove the jobs of a test after it."""
    yield
    slurm.run("scancel", "-u", "root")
    slurm.wait_until("end of all jobs", lambda: not slurm.jobs("PD", "R", "CG", "S"))


@pytest.fixture
def full(slurm: Slurm, folder: Path) -> list[str]:
    """Return jobs that take every CPU, so that others wait."""
    jobs = [submit(slurm, folder, "-N1", "--exclusive", sleep_s=600) for _ in slurm.nodes]
    slurm.wait_until("their runs", lambda: len(slurm.jobs("R")) == len(jobs))
    return jobs
