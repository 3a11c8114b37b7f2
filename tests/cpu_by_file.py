"""A pytest plugin, ``-p tests.cpu_by_file``: which files of tests take most CPU time.

By the clock a test that shares two cores with others seems long whatever it does; the seconds of
CPU tell which ones the check grows by. Those of child processes count where somebody waited for
them to end.
"""

import resource
from collections import Counter
from collections.abc import Generator
from typing import Any, Final

import pytest

MOST_FILES: Final = 40


def _cpu_s() -> float:
    used = (resource.getrusage(of) for of in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(one.ru_utime + one.ru_stime for one in used)


class CpuByFile:
    """Takes each phase of a test to its report, in a worker, and sums them up, where all come."""

    def __init__(self) -> None:
        self._before_s = _cpu_s()
        self._used_s: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, Any, Any]:
        report: Any = yield
        now_s = _cpu_s()
        report.cpu_s, self._before_s = now_s - self._before_s, now_s
        return report

    def pytest_runtest_logreport(self, report: Any) -> None:
        self._used_s[report.location[0]] += report.cpu_s

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        total_s = self._used_s.total()
        terminalreporter.section(f"seconds of CPU by file; all together {total_s:,.0f}")
        for file, used_s in self._used_s.most_common(MOST_FILES):
            terminalreporter.write_line(f"{used_s:8.1f} {file}")


def pytest_configure(config: pytest.Config) -> None:
    """Take part in a run of tests."""
    config.pluginmanager.register(CpuByFile(), "cpu-by-file")
