"""Moved: tests.suite.costs."""

from tests.suite.costs import pytest_configure  # noqa
