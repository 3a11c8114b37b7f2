"""What the tests of the page share: a browser of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.peers.presence import require_program
from tests.service.web.browser import Tab, open_tab


@pytest.fixture
async def tab(tmp_path: Path) -> AsyncIterator[Tab]:
    """A page of a browser of its own."""
    program = require_program("chromium", "browser")
    async with open_tab(program, tmp_path) as tab:
        yield tab
