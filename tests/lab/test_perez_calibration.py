"""Calibrated by the first half of a trace, judged on the second."""

import dataclasses

import msgspec
import numpy as np
import pytest

from outrider_lab.papers.perez.calibration import (
    behaviour_policy_of,
    halves,
    run_calibration,
    spec_of,
)
from outrider_lab.papers.perez.grid import QUICK, WINDOW, Situation
from outrider_lab.papers.perez.grid_run import egee_window
from outrider_lab.reporting.claims import FEWEST_BLOCKS


def test_halves_share_no_job_and_lose_none() -> None:
    whole = egee_window(20_001, 301)
    first, second = halves(whole)
    assert (len(first.submit_s), len(second.submit_s)) == (150, 151)
    assert first.job_names + second.job_names == whole.job_names
    assert first.submit_s[-1] <= second.submit_s[0]
    assert first.vo + second.vo == whole.vo
    assert np.concatenate([first.run_s, second.run_s]).tolist() == whole.run_s.tolist()
    assert first.machines == second.machines == whole.machines


def test_the_behaviour_policy_is_the_sites_own_scheduler_where_its_waits_are_known() -> None:
    window = egee_window(20_001, 300)
    assert behaviour_policy_of(window) == "fifo"
    known = dataclasses.replace(window, wait_s=np.zeros(300))
    assert behaviour_policy_of(known) == "recorded"


@pytest.fixture(scope="module")
def past() -> dict[str, object]:
    """A calibration run on a window with 2,000 jobs."""
    busy = msgspec.structs.replace(QUICK, window_jobs=2000)
    return run_calibration(spec_of(Situation(WINDOW, "intended"), busy, 20_001))


def test_every_start_runs_learning_and_frozen_beside_orders_without_learning(
    past: dict[str, object],
) -> None:
    rows = past["rows"]
    assert isinstance(rows, list)
    starts = [f"sarsa, start {s}{f}" for s in ("shipped", "calibrated", "none")
              for f in ("", ", frozen")]  # fmt: skip
    assert [row["variant"] for row in rows] == ["fifo", "sjf", "edf", *starts]
    assert (past["behaviour_policy"], past["jobs"], past["trace"]) == ("fifo", 1000, None)
    by_variant = {row["variant"]: row for row in rows}
    shipped = by_variant["sarsa, start shipped"]["less_shipped"]
    assert shipped["difference"] == 0.0
    slowdown = by_variant["sarsa, start shipped"]["bounded_slowdown"]
    for row in rows:
        less = row["less_shipped"]
        assert less["difference"] == pytest.approx(row["bounded_slowdown"] - slowdown)
        assert (less["interval"] is None) == (less["blocks"] < FEWEST_BLOCKS)
        assert row["bounded_slowdown"] >= 1.0


def test_what_was_learned_of_the_past_decides(past: dict[str, object]) -> None:
    rows = {row["variant"]: row for row in past["rows"]}  # type: ignore[attr-defined]
    frozen = [rows[f"sarsa, start {start}, frozen"] for start in ("shipped", "calibrated", "none")]
    assert len({(row["interactive_wait_s"], row["batch_wait_s"]) for row in frozen}) == 3
