"""Tests of a daemon in shadow of a real Slurm: its records, reports and recovery."""

import json
from collections import Counter
from pathlib import Path

import pytest

from outrider.journal import Journal
from outrider.model.events import (
    COMPLETED,
    EVICTED,
    KIND_NAMES,
    STARTED,
    SUBMITTED,
    NamedEvent,
)
from tests.cli.running import shell
from tests.peers.beside_slurm.watched import of_slurm, submit
from tests.peers.slurm import Slurm
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.slurm

CONFIG = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 5.0

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0

[policies.bandit]
"""


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return the configuration of a daemon next to the Slurm of the environment."""
    file = tmp_path / "outrider.toml"
    file.write_text(CONFIG.format(state=tmp_path / "state"))
    return file


def recorded(config: Path, job: str) -> list[NamedEvent]:
    """Return the events of a job in the journal."""
    with Journal(config.parent / "state" / "journal.sqlite", read_only=True) as journal:
        return [e for _, _, e in journal.inputs_after(0) if e[2] == f"outrider:{job}"]


def test_every_job_once_at_slurms_own_times_over_kills_of_the_daemon(
    slurm: Slurm, folder: Path, config: Path
) -> None:
    with DaemonProcess(config) as daemon:
        daemon.wait_until("the nodes", lambda s: sum(c["machines"] for c in s["clusters"]) == 3)
        array = submit(slurm, folder, "--array=1-20%6", sleep_s=1.5)
        lost = submit(slurm, folder, "--requeue", sleep_s=60)
        slurm.wait_until("its run", lambda: of_slurm(slurm, lost)["JobState"] == "RUNNING")
        daemon.wait_until("some ends", lambda s: s["jobs"]["completed"] >= 4)
        daemon.kill()
        slurm.run("scontrol", "requeue", lost)
        daemon.start()
        daemon.wait_until("more ends", lambda s: s["jobs"]["completed"] >= 10)
        daemon.kill()
        slurm.wait_until("all ends", lambda: len(slurm.jobs("CD")) >= 20)
        daemon.start()
        daemon.wait_until("all ends", lambda s: s["jobs"]["completed"] == 20)
        status = daemon.wait_until("the eviction", lambda s: sum(s["evictions"].values()) == 1)
        assert status["adapters"][0]["inferred"] is False
        assert daemon.stop() == 0
    for task in range(1, 21):
        job = f"{array}_{task}"
        reported, shown = recorded(config, job), of_slurm(slurm, job)
        counted = Counter(KIND_NAMES[e[1]] for e in reported)
        assert (counted["submitted"], counted["started"], counted["completed"]) == (1, 1, 1), job
        at_s = {e[1]: f"{e[0]:.0f}" for e in reported}
        assert at_s[STARTED] == shown["StartTime"]
        assert at_s[COMPLETED] == shown["EndTime"]
    kinds = [e[1] for e in recorded(config, lost)]
    assert (kinds.count(SUBMITTED), kinds.count(STARTED), kinds.count(EVICTED)) == (1, 1, 1)


def test_no_start_is_on_a_node_outside_the_jobs_class(
    slurm: Slurm, folder: Path, config: Path
) -> None:
    with DaemonProcess(config) as daemon:
        daemon.wait_until("the nodes", lambda s: sum(c["machines"] for c in s["clusters"]) == 3)
        for request in ("-C amd", "-C intel&ssd", "-x n1,n2", "-p express", "--mem=8000"):
            for _ in range(4):
                submit(slurm, folder, *request.split(), sleep_s=0.5)
        daemon.wait_until("all ends", lambda s: s["jobs"]["completed"] == 20, within_s=90)
        assert daemon.stop() == 0
    with Journal(config.parent / "state" / "journal.sqlite", read_only=True) as journal:
        reported = [event for _, _, event in journal.inputs_after(0)]
        would = journal.latest_decisions(1_000)
    classes = {e[2]: set(e[3]) for e in reported if KIND_NAMES[e[1]] == "eligible"}
    of_job = {e[2]: classes[e[3].eligible] for e in reported if e[1] == SUBMITTED}
    starts = [(e[2], e[3][0]) for e in reported if e[1] == STARTED]
    assert len(starts) == 20
    assert all(machine in of_job[job] for job, machine in starts)
    chosen = [(d.job, d.machine) for _, d in would if d.action == "start" and d.machine]
    assert all(machine in of_job[job] for job, machine in chosen)


def test_a_controller_that_dies_is_told_and_the_daemon_goes_on(
    slurm: Slurm, folder: Path, config: Path
) -> None:
    text = config.read_text().replace("look_s = 1.0\n", "look_s = 1.0\nanswer_within_s = 1.0\n")
    config.write_text(f"stale_after_s = 3.0\n{text}")
    with DaemonProcess(config) as daemon:
        daemon.wait_until("the nodes", lambda s: sum(c["machines"] for c in s["clusters"]) == 3)
        job = submit(slurm, folder, "-H", sleep_s=0.5)
        daemon.wait_until("the job", lambda s: s["jobs"]["held"] == 1)
        with slurm.silenced():
            old = daemon.wait_until("old input", lambda s: s["adapters"][0]["input_age_s"] > 4)
            assert "did not answer within 1 s" in json.dumps(old["adapters"][0])
            gone = daemon.wait_until("word of the gap", lambda s: bool(s["no_data"]))
            assert gone["no_data"][0]["text"].startswith("No data since ")
            assert gone["jobs"]["held"] == 1, "what is known, as of then"
            assert 'outrider_jobs{state="held"} NaN\n' in daemon.text("/metrics")
        slurm.run("scontrol", "release", job)
        daemon.wait_until("its end", lambda s: s["jobs"]["completed"] == 1)
        with slurm.silenced():
            daemon.wait_until("old input", lambda s: s["adapters"][0]["input_age_s"] > 2)
            assert daemon.stop() == 0, "nobody waits for a controller that is silent"


def test_the_doctor_says_who_answers_and_how_ends_are_known(slurm: Slurm, config: Path) -> None:
    found = examined(config)
    assert found["controller"][0] == "ok"
    assert "3 nodes" in found["controller"][1]
    assert found["accounting"][0] == "warn"
    assert "300 s (MinJobAge)" in found["accounting"][1]
    text = config.read_text().replace("nodes_s = 1.0", "nodes_s = 1.0\nanswer_within_s = 1.0")
    config.write_text(text)
    with slurm.silenced():
        state, why = examined(config)["controller"]
    assert state == "fail"
    assert "did not answer within 1 s" in why


def examined(config: Path) -> dict[str, tuple[str, str]]:
    """Return state and finding of each check of the adapter by ``outrider doctor``."""
    checks = json.loads(shell("doctor", "--config", config, "--json").out)["checks"]
    return {one["name"].rpartition(" ")[2]: (one["state"], one["found"]) for one in checks}
