"""Every bench runs, at a size at which its figures mean nothing, and prints its fields."""

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from tests.logs_as_before import logs_as_before
from tests.peers import slurm
from tests.peers.pool import missing_reason
from tests.peers.presence import require_peer, require_program

__all__ = ["logs_as_before"]

pytestmark = pytest.mark.usefixtures("logs_as_before")

BENCHES = Path(__file__).parents[2] / "bench"
SHARED = {"calibration", "options"}
"""Files of `bench/` that are no benches."""

FIELDS: dict[str, set[str]] = {
    "acting": {
        "pairs", "badput_s", "goodput_s", "badput_ratio", "evictions", "done", "turnaround_s",
        "policy", "block_s",
    },
    "blocks": {"results"},
    "bytecodes": {"bytecodes_per_event", "calls_per_event", "functions"},
    "candidate_coverage": {"seeds", "results"},
    "candidate_starts": {
        "jobs", "machines", "results", "missed", "max_rss_mb", "calibration_s",
    },
    "cli": {"results", "slowest", "slowest_s", "budget_s", "calibration_s"},
    "corruptions": {"sites", "corruptions", "refused_or_right"},
    "daemon": {
        "idle_cpu_ratio", "idle_rss_mb", "known_rss_mb", "peak_rss_mb", "loop_lag_ms",
        "knock_p99_ms", "quiet_knock_p99_ms", "loaded_cpu_ratio", "ready_s", "ready_after_kill_s",
        "version_to_pass_ratio", "over_budget", "calibration_s",
    },
    "eligibility": {"results", "missed", "calibration_s"},
    "estimator": {"results", "calibration_s"},
    "first_look": {
        "jobs", "machines", "decisions", "first_look_s", "taken_in_and_decided_s", "read_again_s",
        "budget_s", "calibration_s",
    },
    "forecast": {"jobs", "replicates", "compiled", "results", "budget_s", "calibration_s"},
    "intake": {"events_per_s", "htcondor2_events_per_s", "ratio", "max_rss_mb"},
    "journal": {
        "raw_rows_per_s", "journal_rows_per_s", "journal_single_rows_per_s", "journal_to_raw_ratio",
        "ledger_file_rows_per_s", "ledger_file_scored_rows_per_s", "ledger_file_1500k_s",
        "ledger_hash_1500k_s", "ok",
    },
    "leases": {"jobs", "results", "budget_s", "calibration_s"},
    "loop": {"snapshot_ms", "status_ms", "scrape_ms", "lists_ms", "budget_ms", "calibration_s"},
    "matchmaking": {
        "cycle_s", "mixed_cycle_s", "matches_per_s", "raw_matches_per_s", "within_budget",
    },
    "mqtt": {"live_per_s", "backlog_per_s", "calibration_s"},
    "observing": {
        "jobs_queued", "machines", "outrider", "daemon", "collector watched", "schedd watched",
        "budget", "calibration_s",
    },
    "canary": {"results"},
    "off_policy": {"results", "claims_refused"},
    "page": {
        "jobs", "browsers", "pages_ms", "alone_cpu_ratio", "browsers_cpu_ratio", "answers_per_s",
        "over_budget", "budgets", "calibration_s",
    },
    "peers": {"results", "slower", "calibration_s"},
    "planners": {"runs", "missed", "calibration_s"},
    "records": {"readers", "missed", "target_lines_per_s", "calibration_s"},
    "replay": {"runs", "machines", "jobs", "owner_sessions", "calibration_s"},
    "restart": {"wall_s", "cpu_s", "inputs_per_cpu_s", "passes", "budget_s", "calibration_s"},
    "round": {"sizes", "p99_within_budget", "p50_of_50000_over_10000", "calibration_s"},
    "sarsa": {"decision, ms", "one seed of one row, CPU s", "within budget", "calibration_s"},
    "twin": {"sites", "refused", "fidelity", "past", "next"},
    "scrape": {"scrapes", "budget_ms", "within_budget", "calibration_s"},
    "slurm_acting": {"results", "updates_per_s", "too_many", "too_late", "calibration_s"},
    "slurm_observing": {
        "jobs_queued", "nodes", "decisions", "first_look", "taken_in_s", "second_look_s",
        "decided_s", "look_again", "slurmctld_alone", "slurmctld_watched", "added_to_slurmctld",
        "outrider", "budget_s", "budget_share", "calibration_s",
    },
    "starts": {"results"},
    "workloads": {"runs", "missed", "calibration_s"},
}  # fmt: skip

LISTS = {"functions", "readers", "results", "runs", "scrapes", "sizes"}
"""Fields that hold a figure of each kind that was measured."""


def needs_a_pool() -> None:
    """Ends the test where no real HTCondor pool can be watched."""
    pytest.importorskip("htcondor2", reason="needs outrider[htcondor]")
    require_peer("HTCondor pool", missing_reason())


def needs_a_slurm() -> None:
    """Ends the test where no real Slurm can be started."""
    require_peer("Slurm", slurm.missing_reason())


NEEDS: dict[str, Callable[[], object]] = {
    "acting": needs_a_pool,
    "eligibility": lambda: pytest.importorskip("classad2", reason="needs outrider[htcondor]"),
    "first_look": needs_a_pool,
    "leases": needs_a_pool,
    "matchmaking": lambda: pytest.importorskip("classad2", reason="needs outrider[htcondor]"),
    "mqtt": lambda: require_program("mosquitto", "Mosquitto"),
    "observing": needs_a_pool,
    "peers": lambda: pytest.importorskip("accasim", reason="needs outrider[bench]"),
    "slurm_acting": needs_a_slurm,
    "slurm_observing": needs_a_slurm,
}
"""Ends the test of a bench whose peer is not there."""


def test_each_bench_is_among_those_that_are_run_here() -> None:
    assert {path.stem for path in BENCHES.glob("*.py")} - SHARED == FIELDS.keys()


PROCESSES = {
    "acting", "bytecodes", "cli", "daemon", "first_look", "mqtt", "observing", "page", "peers",
    "restart", "slurm_acting", "slurm_observing",
}  # fmt: skip
"""Benches that start processes, or count what their own does."""


def started(bench: Path) -> tuple[int, str]:
    """Run a bench as its own process; its exit code and what it printed."""
    done = subprocess.run(
        [sys.executable, bench, "--small", "--json"],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, done.stdout


def run_here(
    bench: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> tuple[int, str]:
    """Run a bench in this process; its exit code and what it printed."""
    monkeypatch.syspath_prepend(BENCHES)
    monkeypatch.setattr("calibration.STEPS", 1000)
    monkeypatch.setattr(sys, "argv", [str(bench), "--small", "--json"])
    capsys.readouterr()
    code = 0
    with patch.dict(os.environ):  # some set what the processes that they start shall find
        try:
            runpy.run_path(str(bench), run_name="__main__")
        except SystemExit as ended:
            code = int(ended.code or 0)
    return code, capsys.readouterr().out


@pytest.mark.parametrize("bench", sorted(FIELDS))
def test_a_small_bench_prints_its_figures(
    bench: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    NEEDS.get(bench, lambda: None)()
    path = BENCHES / f"{bench}.py"
    code, printed = started(path) if bench in PROCESSES else run_here(path, monkeypatch, capsys)
    assert code in (0, 1), "1: a budget was missed, which says nothing at this size"
    figures: dict[str, Any] = json.loads(printed)
    assert FIELDS[bench] <= figures.keys()
    assert all(figures[name] for name in FIELDS[bench] & LISTS)
