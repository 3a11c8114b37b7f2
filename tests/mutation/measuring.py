"""A pytest plugin: which lines does each test run, how long does it take, and does it pass?

Coverage has been started in this process by its own start-up file, for the environment names a
configuration; it is told here which test is running. So are the daemons that a test starts, by the
variable `TEST`, which their configuration takes as their context.

What a fixture of a module or session does counts for every test of the file: only the first one
runs it.
"""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

TEST: Final = "OUTRIDER_MUTATION_TEST"
RESULTS: Final = "OUTRIDER_MUTATION_RESULTS"

_durations_s: dict[str, float] = {}
_not_passed: set[str] = set()


def _is_run_now(name: str) -> None:
    from coverage import Coverage

    measured = Coverage.current()
    assert measured is not None, "coverage was not started: is COVERAGE_PROCESS_START set?"
    measured.switch_context(name)
    os.environ[TEST] = name


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    _is_run_now(item.nodeid)
    try:
        return (yield)
    finally:
        _is_run_now("")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[Any], request: pytest.FixtureRequest
) -> Iterator[None]:
    before = os.environ.get(TEST, "")
    if fixturedef.scope == "function" or not before:
        return (yield)
    _is_run_now(before.partition("::")[0])
    try:
        return (yield)
    finally:
        _is_run_now(before)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    name = report.nodeid
    _durations_s[name] = _durations_s.get(name, 0.0) + report.duration
    if report.outcome != "passed":
        _not_passed.add(name)


def pytest_sessionfinish() -> None:
    results = {
        "durations_s": {n: round(s, 4) for n, s in _durations_s.items() if n not in _not_passed},
        "not_passed": sorted(_not_passed),
    }
    Path(os.environ[RESULTS]).write_text(json.dumps(results))
