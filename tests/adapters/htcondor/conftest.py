"""A watched mock pool for every test of this folder."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.adapters.htcondor.watched_pool import WatchedPool


@pytest.fixture
def site(tmp_path: Path) -> "Iterator[WatchedPool]":
    """Return a pool of four machines without owners and jobs."""
    from tests.adapters.htcondor.watched_pool import WatchedPool

    made = WatchedPool(tmp_path)
    yield made
    made.close()
