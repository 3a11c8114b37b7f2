"""CPU cost of each test file: ``-p tests.suite.costs`` measures it and holds it to a list.

By the clock a test that shares two cores with others seems long whatever it does; the seconds of
CPU show what a run grows by. Those of child processes count where a test waited for their end.

The list is `tests/cpu.txt`. A run of all tests with CI=true fails where a file costs half as much
again as its line allows, and writes the list again. Machines differ: lines are scaled by the
median ratio of the run to the list.
"""

import os
import resource
import time
from collections import defaultdict
from collections.abc import Generator, Mapping
from pathlib import Path
from statistics import median
from typing import Any, Final, NamedTuple

import pytest

LIST: Final = Path(__file__).resolve().parents[1] / "cpu.txt"
ALLOWED_RATIO: Final = 1.5
SLACK_S: Final = 20.0
"""CPU seconds that any file may cost more than its line.

The first file in a process that needs a large library pays for its import."""
HEADROOM_RATIO: Final = 1.25
"""A line allows this much more than the run that wrote it took: runs differ by that."""
_COMPARED_FROM_S: Final = 3.0
UNLISTED_S: Final = 15.0
"""Limit of a file without a line."""
WHOLE_RATIO: Final = 0.8
"""A run in which this part of the listed files ran is one of all tests."""
SHOWN: Final = 40
_HEAD: Final = """\
# What each file of tests may cost: seconds of CPU (a quarter more than measured), seconds by the
# clock among others, and the file. Written by a run of all tests with CI=true, which fails where a
# file costs half as much again as its line allows (tests/suite/costs.py). The order goes by it.
"""  # fmt: skip


class Cost(NamedTuple):
    """Seconds that a file of tests takes."""

    cpu_s: float
    wall_s: float


def listed(path: Path = LIST) -> dict[str, Cost]:
    """Return the costs of the list, by file; empty where there is none."""
    if not path.exists():
        return {}
    rows = [line.split() for line in path.read_text().splitlines() if not line.startswith("#")]
    return {file: Cost(float(cpu_s), float(wall_s)) for cpu_s, wall_s, file in rows}


def write(costs: Mapping[str, Cost], path: Path = LIST) -> None:
    """Write the list, the dearest file first."""
    rows = sorted(costs.items(), key=lambda row: (-round(row[1].cpu_s, 1), row[0]))
    lines = [
        f"{cost.cpu_s * HEADROOM_RATIO:7.1f} {cost.wall_s:7.1f} {file}\n" for file, cost in rows
    ]
    path.write_text(_HEAD + "".join(lines))


def is_whole(measured: Mapping[str, Cost], lines: Mapping[str, Cost]) -> bool:
    """Return whether a run was one of all tests, so that its costs can be compared and listed."""
    return len(measured.keys() & lines.keys()) >= WHOLE_RATIO * len(lines)


def too_dear(measured: Mapping[str, Cost], lines: Mapping[str, Cost]) -> dict[str, float]:
    """Return the files that cost more than their line allows, with what it allows, in seconds.

    Without any line nothing is too dear: the run writes the first list.
    """
    if not lines:
        return {}
    ratios = [
        measured[file].cpu_s / line.cpu_s
        for file, line in lines.items()
        if file in measured and line.cpu_s >= _COMPARED_FROM_S
    ]
    speed = HEADROOM_RATIO * median(ratios) if ratios else 1.0
    allowed_s = dict.fromkeys(measured.keys() - lines.keys(), UNLISTED_S * speed)
    for file in measured.keys() & lines.keys():
        line_s = lines[file].cpu_s * speed
        allowed_s[file] = max(ALLOWED_RATIO * line_s, line_s + SLACK_S * speed)
    return {f: allowed_s[f] for f in sorted(allowed_s) if measured[f].cpu_s > allowed_s[f]}


def _cpu_s() -> float:
    used = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class CostPlugin:
    """Pytest plugin that attaches phase costs to reports and sums them by file.

    Under pytest-xdist the first happens in the workers, the second in the process that starts them.

    Args:
        holds: whether a file that costs too much fails the run, and the list is written again.
    """

    def __init__(self, holds: bool) -> None:
        self._holds = holds
        self._lines = listed()
        self._before = Cost(_cpu_s(), time.monotonic())
        self._used: defaultdict[str, Cost] = defaultdict(lambda: Cost(0.0, 0.0))
        self._too_dear: dict[str, float] = {}

    def pytest_collection_finish(self) -> None:
        self._before = Cost(_cpu_s(), time.monotonic())  # collecting is the cost of no file

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report: Any = yield
        now = Cost(_cpu_s(), time.monotonic())
        report.cost = [after - before for after, before in zip(now, self._before, strict=True)]
        self._before = now
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        file = report.nodeid.partition("::")[0]  # an inherited test costs the file that asks it
        cpu_s, wall_s = self._used[file]
        self._used[file] = Cost(cpu_s + report.cost[0], wall_s + report.cost[1])

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        is_worker = hasattr(session.config, "workerinput")
        if is_worker or not self._holds or not is_whole(self._used, self._lines):
            return
        if session.exitstatus != pytest.ExitCode.OK:
            return  # a test that failed did not do all of its work
        self._too_dear = too_dear(self._used, self._lines)
        write(self._used)
        if self._too_dear:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        total_s = sum(cost.cpu_s for cost in self._used.values())
        terminalreporter.section(f"seconds of CPU by file; all together {total_s:,.0f}")
        dearest = sorted(self._used.items(), key=lambda row: -row[1].cpu_s)
        for file, cost in dearest[:SHOWN]:
            terminalreporter.write_line(f"{cost.cpu_s:8.1f} {file}")
        for file, allowed_s in self._too_dear.items():
            terminalreporter.write_line(
                f"FAILED {file} costs {self._used[file].cpu_s:.1f} s of CPU; tests/cpu.txt allows "
                f"{allowed_s:.1f} s on this machine: make it cheaper, or commit its new line",
                red=True,
            )


def pytest_configure(config: pytest.Config) -> None:
    """Register the cost plugin."""
    config.pluginmanager.register(CostPlugin(os.environ.get("CI") == "true"), "costs")
