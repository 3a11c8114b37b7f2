"""A test that sets up logs for its process leaves them as they were."""

import logging
from collections.abc import Iterator

import pytest
import structlog


@pytest.fixture
def logs_as_before() -> Iterator[None]:
    """Put the process's logging back after the test."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    before = structlog.get_config()
    yield
    root.handlers[:], root.level = handlers, level
    logging.captureWarnings(False)
    structlog.configure(**before)
