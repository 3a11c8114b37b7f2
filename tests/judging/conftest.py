"""The page is looked at in a browser of its own."""

from serving.conftest import tab

__all__ = ["tab"]
