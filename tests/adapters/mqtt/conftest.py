"""A real broker for each test that asks for one."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.mosquitto import Mosquitto, require_mosquitto


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto that saves after every message."""
    with Mosquitto(require_mosquitto(), tmp_path / "mosquitto") as running:
        yield running
