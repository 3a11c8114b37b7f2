"""Replay of the recorded decisions of a trace's own scheduler."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from outrider.formats.swf.reading import read_swf
from outrider.formats.workload import Workload
from outrider.model.decisions import Decision, DecisionRow
from outrider.model.errors import TraceError
from outrider.plugins.finding import make_policy
from outrider.replay.grid_run import GridRun, RecordedRun
from outrider.simulation.generators.grids import perez_grid
from tests.fixtures.workload_files import file_of, row

Row = tuple[float, str, str, str | None, int]


def recorded(path: Path, until_s: float | None = None) -> tuple[dict[str, Any], list[Row]]:
    """Return the report, and the rows of the ledger."""
    workload, decisions = read_swf(path), list[Decision]()
    report = RecordedRun(workload, [], decisions.append, until_s).run()
    return report, [_row(decision, workload) for decision in decisions]


def _row(decision: Decision, workload: Workload) -> Row:
    row = DecisionRow.of(decision, workload, "observe")
    return row.time_s, row.job, row.action, row.machine, row.cpus


def test_every_job_starts_after_the_wait_that_was_recorded(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, row(1, 0, 10, wait=0), row(2, 0, 10, wait=3.5), row(3, 5, 20, wait=0.25)
    )
    report, rows = recorded(path)
    assert [(time_s, job, action) for time_s, job, action, _, _ in rows] == [
        (0.0, "1", "start"), (3.5, "2", "start"), (5.25, "3", "start"),
    ]  # fmt: skip
    wait = report["wait_s"]["all"]
    assert (wait["mean"], wait["max"], wait["n"]) == (1.25, 3.5, 3)
    assert (report["goodput_s"], report["span_s"], report["decisions"]) == (40.0, 25.25, 3)


def test_jobs_are_put_on_the_first_free_machine_and_give_it_back(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, row(1, 0, 10, wait=0), row(2, 1, 10, wait=0), row(3, 10, 5, wait=0.5),
        row(4, 10.5, 1, wait=0),
    )  # fmt: skip
    report, rows = recorded(path)
    assert [machine for _, _, _, machine, _ in rows] == ["node-0", "node-1", "node-0", "node-2"]
    assert report["overbooked"] == 0


def test_more_at_work_than_there_are_cpus_is_counted_and_nothing_is_lost(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, row(1, 0, 10, 3, wait=0), row(2, 1, 10, 2, wait=0), row(3, 20, 5, 4, wait=0)
    )
    report, rows = recorded(path)
    assert report["overbooked"] == 1
    assert report["goodput_s"] == 30 + 20 + 20
    assert report["jobs"]["completed"] == 3
    assert {machine for _, _, _, machine, _ in rows} == {"pool"}


def test_jobs_without_a_recorded_wait_are_left_out_and_counted(tmp_path: Path) -> None:
    path = file_of(tmp_path, row(1, 0, 10, wait=0), row(2, 0, 10), row(3, 0, 0))
    report, _ = recorded(path)
    assert report["jobs"]["submitted"] == 1
    assert report["jobs"]["skipped"] == {"run time <= 0": 1, "no recorded wait": 1}


def test_a_trace_without_waits_has_nothing_recorded(tmp_path: Path) -> None:
    with pytest.raises(TraceError, match="does not record how long its jobs waited"):
        recorded(file_of(tmp_path, row(1, 0, 10)))


def test_until_gives_the_first_rows_and_leaves_the_rest_unfinished(tmp_path: Path) -> None:
    path = file_of(
        tmp_path, row(1, 0, 10, wait=0), row(2, 1, 50, wait=2), row(3, 8, 5, wait=9),
        row(4, 30, 5, wait=0),
    )  # fmt: skip
    whole, part = recorded(path), recorded(path, until_s=20.0)
    assert part[1] == whole[1][:3]
    jobs = part[0]["jobs"]
    assert (jobs["submitted"], jobs["completed"], jobs["unfinished"]) == (3, 1, 2)
    assert part[0]["span_s"] == 20.0


def test_a_schedule_told_again_as_recorded_has_the_same_figures() -> None:
    """A recorded run reports the waits of FIFO that were written into the trace."""
    workload = perez_grid(0.4, 1, jobs=800)
    starts: dict[str, float] = {}
    run = GridRun(
        workload, [make_policy("fifo", {}, 0, "test")],
        lambda d: starts.__setitem__(workload.job_names[d.job], d.time_s),
    )  # fmt: skip
    fifo = run.run()
    assert fifo["wait_s"]["all"]["mean"] > 0
    workload.wait_s[:] = np.array([starts[job] for job in workload.job_names]) - workload.submit_s
    again = RecordedRun(workload, [], lambda *_: None).run()
    assert (again["jobs"], again["starts"]) == (fifo["jobs"], fifo["starts"])
    for name in ("wait_s", "overhead_s", "bounded_slowdown"):
        for key, figure in fifo[name]["all"].items():
            assert again[name]["all"][key] == pytest.approx(figure, abs=1e-6), (name, key)
    for name in ("goodput_s", "utilisation_ratio", "span_s"):
        assert again[name] == pytest.approx(fifo[name]), name
    for name, expected in fifo["fairness"].items():
        assert again["fairness"][name] == pytest.approx(expected, abs=1e-6), name
    assert again["utility"]["total"] == pytest.approx(fifo["utility"]["total"])


def test_a_policy_in_shadow_decides_beside_and_changes_nothing(tmp_path: Path) -> None:
    path = file_of(tmp_path, *(row(n, 3 * n, 40, wait=n % 5, group=n % 2) for n in range(1, 60)))
    alone, rows = recorded(path)
    decisions: list[Decision] = []
    workload = read_swf(path)
    with_shadow = RecordedRun(workload, [make_policy("sjf", {}, 0, "test")], decisions.append).run()
    assert [_row(each, workload) for each in decisions if each.policy == "recorded"] == rows
    assert {each.policy for each in decisions} == {"recorded", "sjf"}
    for name in ("jobs", "wait_s", "fairness", "goodput_s", "span_s", "decisions"):
        assert with_shadow[name] == alone[name], name
