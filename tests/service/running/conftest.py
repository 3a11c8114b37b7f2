"""Fixtures for tests of a running daemon."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.service.running.other_users import open_folder


@pytest.fixture
def path() -> Iterator[Path]:
    """Return where a daemon's socket is to be: a place that other users can reach."""
    with open_folder() as folder:
        yield folder / "outrider.sock"
