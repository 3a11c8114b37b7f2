"""Fixtures of the page's tests: one browser, and a new tab in it for each test."""

from collections.abc import AsyncIterator, Iterator

import pytest

from tests.peers.presence import require_program
from tests.service.web.browser import Tab, open_tab, started_browser


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a running Chromium."""
    program = require_program("chromium", "browser")
    with started_browser(program, tmp_path_factory.mktemp("browser")) as address:
        yield address


@pytest.fixture
async def tab(browser: str) -> AsyncIterator[Tab]:
    """A page without cookies, storage or cache of any other test."""
    async with open_tab(browser) as tab:
        yield tab
