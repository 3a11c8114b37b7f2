"""Tests of the mock pool need HTCondor's Python bindings, which have no wheel for every machine."""

import importlib.util
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

_FOLDERS = ("htcondor", "mock_condor")


def _bindings_are_here() -> bool:
    if importlib.util.find_spec("htcondor2") is None:
        return False
    try:
        import htcondor2  # noqa: F401 - a wheel for another libc is found, and cannot be loaded
    except ImportError:
        return False
    return True


class _WithoutBindings(pytest.Module):
    """A module that is not imported: it would fail before a test could say why."""

    def collect(self) -> Iterator[pytest.Item | pytest.Collector]:
        pytest.skip("outrider[htcondor] is not installed", allow_module_level=True)


def pytest_pycollect_makemodule(
    module_path: Path, parent: pytest.Collector
) -> pytest.Module | None:
    """Skip what needs the bindings where they are missing; in CI it fails instead."""
    if module_path.parent.name not in _FOLDERS or os.environ.get("CI") == "true":
        return None
    if _bindings_are_here():
        return None
    return _WithoutBindings.from_parent(parent, path=module_path)
