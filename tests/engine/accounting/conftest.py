"""The page is looked at in a real browser."""

from tests.service.web.conftest import browser, tab

__all__ = ["browser", "tab"]
