"""Committed generated files match what the code generates."""

import difflib
from collections.abc import Callable
from pathlib import Path

import pytest

from outrider.api import MissingPackageError
from outrider.plugins.finding import load_adapter
from tools.generate import GENERATED, write

RequirePeer = Callable[[str, str | None], None]


@pytest.fixture(autouse=True)
def every_adapter(require_peer: RequirePeer) -> None:
    """Require that all adapters load, because the pages list their settings."""
    try:
        load_adapter("mock_condor")
    except MissingPackageError as error:
        require_peer("Python bindings of HTCondor", str(error))


@pytest.mark.parametrize("path", GENERATED)
def test_the_committed_file_is_what_the_code_makes(path: str, repository: Path) -> None:
    committed = (repository / path).read_text(encoding="utf-8").splitlines()
    made = GENERATED[path]().splitlines()
    changes = difflib.unified_diff(
        committed, made, f"{path}, committed", "as made", lineterm="", n=0
    )
    told = "\n".join(list(changes)[:20])
    assert committed == made, f"run `make docs`:\n{told}"


def test_only_what_differs_is_written(tmp_path: Path) -> None:
    assert sorted(write(tmp_path)) == sorted(GENERATED)
    changed, *_ = GENERATED
    (tmp_path / changed).write_text("old", encoding="utf-8")
    assert write(tmp_path) == [changed]
    assert write(tmp_path) == []
