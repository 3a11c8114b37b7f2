"""Parallel tasks: each ends once, and a failure concerns its own task alone."""

import multiprocessing as mp
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

from outrider_lab.running.workers import Finished, side_by_side
from tests.lab import chores


def test_every_task_ends_once_with_its_result() -> None:
    ends = list(side_by_side(range(7), chores.double, 2))
    assert sorted(ends) == [Finished(n, 2 * n, None) for n in range(7)]


def test_more_processes_than_tasks_do_no_harm() -> None:
    assert list(side_by_side([5], chores.double, 8)) == [Finished(0, 10, None)]
    assert list(side_by_side([], chores.double, 8)) == []


def test_a_task_that_raises_is_named_with_its_error_and_the_others_go_on() -> None:
    ends = sorted(side_by_side(range(6), chores.fail_on_three, 2), key=lambda end: end.number)
    assert [end.result for end in ends] == [0, 1, 2, None, None, 5]
    assert ends[3].error == "policy three: cannot divide"
    assert ends[4].error == "ZeroDivisionError: four"


def test_a_process_that_dies_fails_its_own_task_only() -> None:
    ends = sorted(side_by_side(range(6), chores.die_on_three, 2), key=lambda end: end.number)
    assert [end.result for end in ends] == [0, 1, 2, None, 4, 5]
    assert ends[3].error == "its process ended with exit code -9"


def test_what_cannot_be_sent_back_fails_its_task() -> None:
    (end,) = side_by_side([1], chores.a_function, 1)
    assert end.error is not None
    assert "pickle" in end.error


def test_a_process_stays_with_a_group_while_it_can() -> None:
    groups = ["a", "b", "a", "b", "a"]
    ends = list(side_by_side(groups, chores.process_of, 1, group_of=lambda task: task))
    assert [groups[end.number] for end in ends] == ["a", "a", "a", "b", "b"]


def test_two_processes_begin_with_different_groups() -> None:
    groups = ["a"] * 3 + ["b"] * 3
    ends = list(side_by_side(groups, chores.process_of, 2, group_of=lambda task: task))
    first = {groups[end.number]: end.result for end in sorted(ends, reverse=True)}
    assert len(set(first.values())) == 2


def test_who_stops_early_leaves_no_process_behind() -> None:
    before = set(mp.active_children())
    ends = side_by_side([0, 1, 2], chores.dawdle, 2)
    assert next(ends).number == 0
    assert set(mp.active_children()) > before
    ends.close()  # type: ignore[attr-defined]
    assert set(mp.active_children()) == before


def test_no_process_outlives_a_parent_that_was_killed(tmp_path: Path) -> None:
    file = tmp_path / "process"
    parent = subprocess.Popen([sys.executable, chores.__file__, str(file)])
    try:
        until(lambda: file.exists() and file.read_text().endswith("\n"), "its process began")
        process = int(file.read_text())
        parent.kill()
        parent.wait()
        until(lambda: not is_running(process), "the process ended")
        assert not is_running(process)
    finally:
        parent.kill()


def until(condition: Callable[[], bool], what: str) -> None:
    """Wait for a condition, a minute at most."""
    deadline = time.monotonic() + 60.0
    while not condition():
        assert time.monotonic() < deadline, f"a minute passed before {what}"
        time.sleep(0.05)


def is_running(process: int) -> bool:
    """Return True if the process runs, and is not a zombie of a parent that has left."""
    try:
        return not re.search(r"\) Z ", Path(f"/proc/{process}/stat").read_text())
    except FileNotFoundError:
        return False
