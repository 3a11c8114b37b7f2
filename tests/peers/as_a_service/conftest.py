"""Machine for each module of tests here; modules that cannot boot one give the reason."""

from collections.abc import Iterator

import pytest

from tests.peers.as_a_service.machine import Machine, missing_reason
from tests.peers.as_a_service.rules import forbidden_reason
from tests.peers.presence import require_allowed, require_peer

NAME = "systemd as process 1"


@pytest.fixture(scope="module")
def machine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Machine]:
    """Provide a machine that is created, not yet booted."""
    require_peer(NAME, missing_reason())
    require_allowed(NAME, forbidden_reason())
    with Machine(tmp_path_factory.mktemp("machine")) as made:
        yield made
