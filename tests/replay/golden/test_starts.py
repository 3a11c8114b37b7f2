"""Starts of policies stay the same, unless they are changed on purpose."""

from pathlib import Path

import pytest

from tests.replay.golden import starts


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of this module's traces, kept between its tests."""
    return tmp_path_factory.mktemp("golden")


@pytest.mark.parametrize("run", starts.listed(), ids=lambda run: run.name)
def test_the_starts_are_those_of_the_list(run: starts.Run, folder: Path) -> None:
    assert starts.replay(run, folder) == run


def test_the_list_is_long_and_every_run_starts_jobs() -> None:
    runs = starts.listed()
    assert len(runs) >= 30
    assert all(run.starts >= 100 for run in runs)
