"""A real broker for each test, and a client that listens to it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.mosquitto import Mosquitto, require_mosquitto
from tests.service.mqtt.listener import Listener


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Mosquitto]:
    """A running Mosquitto of the test's own."""
    with Mosquitto(require_mosquitto(), tmp_path / "broker") as running:
        yield running


@pytest.fixture
def listener(broker: Mosquitto) -> Iterator[Listener]:
    """A client that hears everything Outrider publishes."""
    with Listener(broker.port) as client:
        yield client
