"""Small workload files: one made by the real command, one by hand."""

from pathlib import Path

import pytest

from tests.cli.running import outrider
from tests.fixtures.workload_files import file_of, row

JOBS = 400


@pytest.fixture(scope="session")
def grid(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Generate a small grid with the real command."""
    path = tmp_path_factory.mktemp("grid") / "grid.swf.gz"
    done = outrider(
        "generate", "grid", "--row", 0.4, "--jobs", JOBS, "--machines", 8, "--seed", 3,
        "--out", path,
    )  # fmt: skip
    assert done.code == 0, done
    return path


@pytest.fixture
def desk(tmp_path: Path) -> Path:
    """Write parallel jobs for four CPUs; the second does not fit next to the first."""
    return file_of(
        tmp_path,
        row(1, 0, 100, 3, wait=0, group=1, time_asked=200),
        row(2, 1, 50, 4, wait=99, group=2, time_asked=60),
        row(3, 2, 30, 1, wait=0, group=1, time_asked=40),
        row(4, 3, 1000, 1, wait=200, group=2, time_asked=2000),
        row(5, 4, 0, 1, wait=0),
    )
