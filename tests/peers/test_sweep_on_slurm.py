"""Tests of `outrider sweep` on a real Slurm: workers are jobs, and no cell is lost with one."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.running import COMMAND, interruptible, shell
from tests.lab.swept import ONE_TRACE, SMALL, install_policies, measured, rows_of, write_sweep
from tests.lab.test_sweep_on_workloads import two_files
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm, missing_reason

pytestmark = pytest.mark.slurm

LOOPBACK = '\n[cluster]\ninterface = "lo"\nmemory = "1 GB"\nwalltime = "00:30:00"\n'
WAITING = (
    ONE_TRACE.replace("[1]", "[1, 2]")
    + '[[policies]]\nname = "fifo"\n[[policies]]\nname = "patient"\n'
)
ENDS_WITHIN_S = 120.0


@pytest.fixture(scope="module")
def slurm(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Slurm]:
    """Provide a Slurm of two nodes, for the tests of this module."""
    require_peer("Slurm", missing_reason())
    with Slurm(tmp_path_factory.mktemp("slurm") / "run") as running:
        yield running


def test_the_results_are_those_of_this_machine(slurm: Slurm, tmp_path: Path) -> None:
    file = write_sweep(tmp_path, SMALL + LOOPBACK)
    words = ("--cluster", "slurm", "--jobs", 2)
    before = slurm.jobs()
    done = shell("sweep", file, "--out", tmp_path / "slurm.json", *words, **slurm.environment)
    assert done.code == 0, done
    assert done.err == ""
    assert len(slurm.jobs()) == len(before) + 2
    assert shell("sweep", file, "--out", tmp_path / "here.json").code == 0
    assert measured(rows_of(tmp_path / "slurm.json")) == measured(rows_of(tmp_path / "here.json"))
    slurm.wait_until("end of the workers", lambda: not slurm.jobs("R", "PD", "CG"))


def test_windows_of_a_workload_file_bring_what_they_bring_here(
    slurm: Slurm, tmp_path: Path
) -> None:
    two_files(tmp_path)
    grid = (
        '[[traces]]\nworkload = ["a.swf", "b.swf"]\nwindows = { days = 1 }\n'
        'estimates = ["requested", "exact"]\ndiscipline = ["easy", "easy_sjbf"]\n'
        '[[policies]]\nname = "fifo"\n'
    )
    file = write_sweep(tmp_path, grid + LOOPBACK)
    words = ("--cluster", "slurm", "--jobs", 2)
    done = shell("sweep", file, "--out", tmp_path / "slurm.json", *words, **slurm.environment)
    assert done.code == 0, done
    assert shell("sweep", file, "--out", tmp_path / "here.json").code == 0
    rows = measured(rows_of(tmp_path / "slurm.json"))
    assert rows == measured(rows_of(tmp_path / "here.json"))
    assert len(rows) == 16
    assert {row["truth"] for row in rows} == {"", "estimates are the true run times (exact)"}
    slurm.wait_until("end of the workers", lambda: not slurm.jobs("R", "PD", "CG"))


def test_jobs_that_end_early_are_replaced_and_no_cell_is_lost(slurm: Slurm, tmp_path: Path) -> None:
    environment = slurm.environment | install_policies(tmp_path / "plugins")
    environment["DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT"] = "1s"
    file, out = write_sweep(tmp_path, WAITING + LOOPBACK), tmp_path / "results.json"
    with started(file, out, environment) as sweep:
        first = wait_for_runs(slurm, out)
        for job in first:
            slurm.run("scancel", job)
        slurm.wait_until("new jobs", lambda: len(set(slurm.jobs("R")) - set(first)) == 2)
        Path(environment["PATIENT_NOTE"]).touch()
        assert sweep.wait(ENDS_WITHIN_S) == 0
    assert [(row["policy"], row["error"]) for row in rows_of(out)] == [
        ("fifo", None), ("patient", None), ("fifo", None), ("patient", None),
    ]  # fmt: skip


def test_a_sweep_that_is_interrupted_takes_its_jobs_back_and_can_go_on(
    slurm: Slurm, tmp_path: Path
) -> None:
    environment = slurm.environment | install_policies(tmp_path / "plugins")
    file, out = write_sweep(tmp_path, WAITING + LOOPBACK), tmp_path / "results.json"
    with started(file, out, environment) as sweep:
        wait_for_runs(slurm, out)
        sweep.send_signal(signal.SIGINT)
        assert sweep.wait(ENDS_WITHIN_S) == 130
    slurm.wait_until("end of the workers", lambda: not slurm.jobs("R", "PD", "CG"))
    assert not out.exists()
    Path(environment["PATIENT_NOTE"]).touch()
    reported = shell(
        "sweep", file, "--out", out, "--resume", "--workers", 1, "--json", **environment
    )
    assert reported.json()["kept"] == 2
    assert [row["error"] for row in rows_of(out)] == [None] * 4


def test_a_partition_that_is_not_there_is_told_in_slurms_words(
    slurm: Slurm, tmp_path: Path
) -> None:
    file = write_sweep(tmp_path, SMALL + LOOPBACK + 'queue = "nosuch"\n')
    words = ("--out", tmp_path / "results.json", "--cluster", "slurm", "--jobs", 1)
    done = shell("sweep", file, *words, **slurm.environment)
    assert done.code == 3
    assert done.err.startswith("outrider: slurm takes no job: sbatch: error: ")
    assert "nvalid partition" in done.err


def started(file: Path, out: Path, environment: dict[str, str]) -> subprocess.Popen[bytes]:
    """Start a sweep on two jobs."""
    words = ["sweep", str(file), "--out", str(out), "--cluster", "slurm", "--jobs", "2"]
    with interruptible():
        return subprocess.Popen([COMMAND, *words], env={**os.environ, **environment})


def wait_for_runs(slurm: Slurm, out: Path) -> list[str]:
    """Wait until both runs that do not wait are done and both jobs run; return the jobs."""
    kept = out.with_name(f"{out.name}.runs")
    slurm.wait_until(
        "two finished runs", lambda: kept.exists() and kept.read_bytes().count(b"\n") == 2
    )
    slurm.wait_until("two running jobs", lambda: len(slurm.jobs("R")) == 2)
    return slurm.jobs("R")
