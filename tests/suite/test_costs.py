"""A file of tests that grows dear is noticed, and the next run begins with what takes long."""

import os
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest

from tests.suite.costs import (
    ALLOWED_RATIO,
    HEADROOM_RATIO,
    Cost,
    is_whole,
    listed,
    too_dear,
    write,
)
from tests.suite.order import in_order

LINES = {f"tests/test_{n}.py": Cost(100.0, 200.0) for n in range(9)} | {
    "tests/quick.py": Cost(0.1, 1)
}


def slower(ratio: float, **dearer: float) -> dict[str, Cost]:
    """A run on a machine that takes `ratio` times as long; some files cost more of themselves."""
    return {
        file: Cost(
            line.cpu_s / HEADROOM_RATIO * ratio * dearer.get(Path(file).stem, 1.0), line.wall_s
        )
        for file, line in LINES.items()
    }


@pytest.mark.parametrize("machine", [0.4, 1.0, 3.0])
def test_a_file_that_costs_half_as_much_again_is_named_on_any_machine(machine: float) -> None:
    assert too_dear(slower(machine), LINES) == {}
    assert too_dear(slower(machine, test_3=1.8), LINES) == {}
    found = too_dear(slower(machine, test_3=2.0, test_4=2.5), LINES)
    assert list(found) == ["tests/test_3.py", "tests/test_4.py"]
    assert found["tests/test_3.py"] == pytest.approx(ALLOWED_RATIO * 100.0 * machine)


def test_a_short_file_may_take_a_moment_longer_and_no_more() -> None:
    assert too_dear(slower(1.0, quick=20.0), LINES) == {}
    assert list(too_dear(slower(1.0, quick=400.0), LINES)) == ["tests/quick.py"]


def test_a_dear_file_without_a_line_is_named_and_a_cheap_one_is_not() -> None:
    run = slower(1.0) | {
        "tests/test_new.py": Cost(14.0, 14.0),
        "tests/test_dear.py": Cost(16.0, 16.0),
    }
    assert list(too_dear(run, LINES)) == ["tests/test_dear.py"]
    assert too_dear(run, {}) == {}, "the run that writes the first list"


def test_a_part_of_the_tests_is_no_whole_run() -> None:
    assert is_whole(slower(1.0), LINES)
    assert not is_whole(
        {file: cost for file, cost in LINES.items() if file < "tests/test_5"}, LINES
    )


def test_the_list_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "cpu.txt"
    write(LINES, path)
    read = listed(path)
    for file, line in LINES.items():
        assert read[file].cpu_s == pytest.approx(line.cpu_s * HEADROOM_RATIO, abs=0.06)
        assert read[file].wall_s == line.wall_s
    assert len(read) == len(LINES)
    assert path.read_text().splitlines()[3].split()[-1] == "tests/test_0.py", "the dearest first"
    assert listed(tmp_path / "none") == {}


def test_every_line_of_the_list_is_a_file(repository: Path) -> None:
    missing = [file for file in listed() if not (repository / file).is_file()]
    assert missing == [], "take these lines out of tests/cpu.txt"


class Item:
    """Stub of a test, sufficient for its place in the order."""

    def __init__(self, nodeid: str) -> None:
        self.nodeid = nodeid


def test_long_files_come_first_and_waiting_ones_among_them() -> None:
    costs = {f"compute_{n}.py": Cost(10.0 * n, 10.0 * n) for n in range(1, 9)}
    costs |= {f"wait_{n}.py": Cost(1.0, 50.0 * n) for n in range(1, 5)}
    items = [Item(f"{file}::test_{n}") for file in sorted(costs) for n in range(2)]
    ordered = [item.nodeid for item in in_order(items, costs)]  # type: ignore[arg-type]
    assert sorted(ordered) == sorted(item.nodeid for item in items)
    files = list(dict.fromkeys(nodeid.split("::")[0] for nodeid in ordered))
    assert [ordered[2 * n].split("::")[0] for n in range(12)] == files, "no file is torn apart"
    assert [f for f in files if f.startswith("c")] == [f"compute_{n}.py" for n in range(8, 0, -1)]
    assert [f for f in files if f.startswith("w")] == [f"wait_{n}.py" for n in range(4, 0, -1)]
    assert files.index("wait_1.py") < 0.8 * len(files)
    gaps = [files.index(f"wait_{n}.py") for n in range(4, 0, -1)]
    assert all(later - earlier > 1 for earlier, later in pairwise(gaps))


ONE_TEST = """\
import time

def test_it_computes():
    end_s = time.process_time() + {cpu_s}
    while time.process_time() < end_s:
        pass
"""


@pytest.mark.parametrize("is_ci", [True, False])
def test_a_run_in_ci_fails_where_a_file_is_too_dear_and_writes_the_list(
    is_ci: bool, tmp_path: Path, repository: Path
) -> None:
    tests = tmp_path / "project" / "tests"
    (tests / "suite").mkdir(parents=True)
    for name in ("__init__.py", "suite/__init__.py", "suite/costs.py"):
        (tests / name).write_text((repository / "tests" / name).read_text())
    (tests / "test_cheap.py").write_text(ONE_TEST.format(cpu_s=0.05))
    (tests / "test_dear.py").write_text(ONE_TEST.format(cpu_s=0.8))
    lines = {"tests/test_cheap.py": Cost(0.05, 0.1), "tests/test_dear.py": Cost(0.1, 0.1)}
    write(lines, tests / "cpu.txt")
    slack = (
        (tests / "suite" / "costs.py")
        .read_text()
        .replace("SLACK_S: Final = 20.0", "SLACK_S: Final = 0.04")
    )
    (tests / "suite" / "costs.py").write_text(slack)
    environment = {name: value for name, value in os.environ.items() if name != "CI"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "tests.suite.costs", "-p", "no:cacheprovider"],
        cwd=tests.parent, capture_output=True, text=True, check=False, timeout=120,
        env=environment | ({"CI": "true"} if is_ci else {}),
    )  # fmt: skip
    assert "2 passed" in done.stdout
    assert (done.returncode, "FAILED tests/test_dear.py" in done.stdout) == (int(is_ci), is_ci)
    assert (listed(tests / "cpu.txt")["tests/test_dear.py"].cpu_s > 0.5) is is_ci
