"""A sweep on workers of dask: the same results, failures named, jobs as they were asked for."""

import os
import signal
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tests.cli.running import outrider, shell
from tests.lab.batch_shims import install_shims
from tests.lab.swept import ONE_TRACE, SMALL, install_policies, measured, rows_of, write_sweep

LOOPBACK = '\n[cluster]\ninterface = "lo"\nmemory = "1 GB"\n'


@pytest.fixture
def shims(tmp_path: Path) -> Iterator[Path]:
    """A folder with PBS's and HTCondor's commands; jobs that outlive a test are ended."""
    folder = tmp_path / "shims"
    yield folder
    for file in folder.glob("pid-*"):
        with suppress(ProcessLookupError):  # it was removed, as it should be
            os.killpg(int(file.read_text()), signal.SIGKILL)


def test_dask_on_this_machine_brings_what_processes_bring(tmp_path: Path) -> None:
    file = write_sweep(tmp_path)
    words = ("--cluster", "local-dask", "--workers", 2)
    done = shell("sweep", file, "--out", tmp_path / "dask.json", *words)
    assert done.code == 0, done
    assert done.err == ""
    outrider("sweep", file, "--out", tmp_path / "plain.json", "--workers", 1)
    assert measured(rows_of(tmp_path / "dask.json")) == measured(rows_of(tmp_path / "plain.json"))


def test_cells_that_fail_or_kill_their_workers_are_named_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    environment = install_policies(tmp_path / "plugins")
    tables = "".join(f'[[policies]]\nname = "{n}"\n' for n in ("clueless", "deadly", "fifo"))
    file, out = write_sweep(tmp_path, ONE_TRACE + tables), tmp_path / "results.json"
    words = ("--cluster", "local-dask", "--workers", 1, "--retries", 0)
    done = shell("sweep", file, "--out", out, *words, **environment)
    assert done.code == 1, done
    clueless, deadly, fifo = rows_of(out)
    assert "out of ideas" in clueless["error"]
    assert deadly["error"].startswith("KilledWorker: ")
    assert fifo["error"] is None
    assert "deadly, seed 0, on generated-1 " in done.err


def test_pbs_runs_the_cells_in_jobs_of_its_own(tmp_path: Path, shims: Path) -> None:
    environment = install_shims(shims)
    environment["DASK_JOBQUEUE__PBS__WORKER_EXTRA_ARGS"] = '["--lifetime", "1h"]'  # the site's own
    settings = 'queue = "long"\naccount = "phys"\nwalltime = "01:30:00"\nprologue = ["umask 077"]\n'
    file, out = write_sweep(tmp_path, SMALL + LOOPBACK + settings), tmp_path / "results.json"
    done = shell("sweep", file, "--out", out, "--cluster", "pbs", "--jobs", 2, **environment)
    assert done.code == 0, done
    assert {row["error"] for row in rows_of(out)} == {None}
    jobs = [job.read_text() for job in shims.glob("job-*")]
    assert len(jobs) == 2
    for line in (
        "#PBS -q long", "#PBS -A phys", "#PBS -l select=1:ncpus=1:mem=954MB",
        "#PBS -l walltime=01:30:00", "umask 077",
    ):  # fmt: skip
        assert f"{line}\n" in jobs[0]
    assert "--lifetime 1h" in jobs[0]
    assert "--tls-key" in jobs[0]


def test_htcondor_runs_the_cells_in_jobs_of_its_own(tmp_path: Path, shims: Path) -> None:
    environment = install_shims(shims)
    settings = 'disk = "2 GB"\nprologue = ["umask 077"]\ndirectives = { requirements = "HasNfs" }\n'
    file, out = write_sweep(tmp_path, SMALL + LOOPBACK + settings), tmp_path / "results.json"
    done = shell("sweep", file, "--out", out, "--cluster", "htcondor", "--jobs", 1, **environment)
    assert done.code == 0, done
    assert {row["error"] for row in rows_of(out)} == {None}
    (job,) = (job.read_text() for job in shims.glob("job-*"))
    assert "\nrequirements = HasNfs\n" in job
    assert "\nMY.DaskWorkerDisk = 2000000000\n" in job
    assert "'umask 077; " in job


def test_a_batch_system_that_takes_no_job_is_told_in_its_own_words(
    tmp_path: Path, shims: Path
) -> None:
    environment = install_shims(shims)
    (shims / "qsub").write_text("#!/bin/sh\necho 'qsub: Unknown queue' >&2\nexit 170\n")
    file, out = write_sweep(tmp_path, SMALL + LOOPBACK), tmp_path / "results.json"
    done = shell("sweep", file, "--out", out, "--cluster", "pbs", "--jobs", 2, **environment)
    assert done.code == 3
    assert done.err == "outrider: pbs takes no job: qsub: Unknown queue\n"
    assert not out.exists()
    assert not (tmp_path / "results.json.runs").exists()


def test_without_the_batch_systems_commands_no_job_is_taken(tmp_path: Path) -> None:
    file = write_sweep(tmp_path, SMALL + LOOPBACK)
    words = ("--out", tmp_path / "results.json", "--cluster", "pbs", "--jobs", 1)
    done = shell("sweep", file, *words, PATH="/nowhere")
    assert done.code == 3
    assert "No such file or directory: 'qsub'" in done.err
