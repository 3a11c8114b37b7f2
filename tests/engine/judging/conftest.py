"""The page is looked at in a browser of its own."""

from tests.service.web.conftest import tab

__all__ = ["tab"]
