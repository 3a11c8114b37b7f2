"""Pytest plugin that runs listed tests, each within its time, and reports the first failure."""

import json
import os
from pathlib import Path
from typing import Final

import pytest

LISTED: Final = "OUTRIDER_MUTATION_LISTED"
"""Environment variable: a JSON file of seconds by test id, in order."""
FAILED: Final = "OUTRIDER_MUTATION_FAILED"
"""Environment variable: a file for the id of the first failed test."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    listed: dict[str, float] = json.loads(Path(os.environ[LISTED]).read_text())
    places: dict[str, int] = {}
    for test in listed:  # a file's tests together: they share fixtures
        places.setdefault(test.partition("::")[0], len(places))
    wanted = [item for item in items if item.nodeid in listed]
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid not in listed])
    order = {test: n for n, test in enumerate(listed)}
    wanted.sort(key=lambda item: (places[item.nodeid.partition("::")[0]], order[item.nodeid]))
    for item in wanted:
        item.add_marker(pytest.mark.timeout(listed[item.nodeid]), append=False)
    items[:] = wanted


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if report.failed:
        Path(os.environ[FAILED]).write_text(report.nodeid)
