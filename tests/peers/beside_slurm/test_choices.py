"""Tests that no policy chooses a node that Slurm would refuse the job.

Nodes are idle and jobs wait, for the scheduler rests: so every policy decides about all of them,
and each choice is put to Slurm: would it take this very job on this very node (``--test-only``)?
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.peers import every_policy
from tests.peers.beside_slurm.watched import NODES, SETTINGS, submit, write_script
from tests.peers.cloud_slurm import STILL
from tests.peers.presence import require_peer
from tests.peers.slurm import Slurm, missing_reason
from tests.service.running.process import DaemonProcess

pytestmark = pytest.mark.slurm

ON: Final = "--nodelist="
JOBS: Final = {  # first the one that a single node takes, before others fill that node
    "one node": (f"{ON}n2",),
    "anything": (),
    "a feature": ("--constraint=ssd",),
    "two features": ("--constraint=ssd&amd",),
    "one of two features": ("--constraint=amd|ssd",),
    "four CPUs": ("--cpus-per-task=4",),
    "another partition": ("--partition=express", "--time=5"),
    "not one node": ("--exclude=n1",),
    "a closed partition": ("--partition=closed",),
    "a feature in another partition": ("--partition=express", "--constraint=ssd"),
}
NOWHERE: Final = {"a closed partition"}
CONFIG: Final = """\
mode = "shadow"
state_dir = "{state}"
listen = "127.0.0.1:0"
reconsider_s = 5.0

[adapters.slurm]
look_s = 1.0
nodes_s = 1.0

"""


@pytest.fixture(scope="module")
def slurm(folder: Path) -> Iterator[Slurm]:
    """Provide three different nodes whose scheduler starts nothing."""
    require_peer("Slurm", missing_reason())
    write_script(folder)
    running = Slurm(
        folder / "run", 3, cpus=4, memory_mib=8000, node_settings=NODES,
        settings=f"{SETTINGS}DefMemPerCPU=1000\n", scheduling=STILL,
    )  # fmt: skip
    with running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("SLURM_TIME_FORMAT", "%s")
        yield running


def test_every_start_that_any_policy_chose_is_one_that_slurm_would_make(
    slurm: Slurm, folder: Path, tmp_path: Path
) -> None:
    kinds = {
        f"outrider:{submit(slurm, folder, *words)}": what
        for what, words in JOBS.items()
        for _ in range(3)
    }
    config = tmp_path / "outrider.toml"
    config.write_text(CONFIG.format(state=tmp_path / "state") + every_policy.tables())
    journal = tmp_path / "state" / "journal.sqlite"

    def deciding() -> set[str]:
        return {policy for policy, _, _ in every_policy.starts(journal)}

    def started() -> set[str]:
        return {kinds[job] for _, job, _ in every_policy.starts(journal)}

    with DaemonProcess(config) as daemon:
        status = daemon.wait_until("jobs", lambda s: sum(s["jobs"].values()) == len(kinds))
        slurm.wait_until("choices of all", lambda: deciding() >= set(every_policy.names()))
        slurm.wait_until("starts of every kind", lambda: started() >= set(JOBS) - NOWHERE)
        seen_s = status["now_s"]
        daemon.wait_until("more passes", lambda s: s["now_s"] > seen_s + 15.0)
        assert daemon.stop() == 0
    assert len(slurm.jobs("PD")) == len(kinds), "its scheduler rests"
    chosen = {(kinds[job], node) for _, job, node in every_policy.starts(journal)}
    assert [pair for pair in sorted(chosen) if not is_taken(slurm, folder, *pair)] == []
    assert {node for _, node in chosen} == set(slurm.nodes)
    assert {what for what, _ in chosen} == set(JOBS) - NOWHERE


def is_taken(slurm: Slurm, folder: Path, what: str, node: str) -> bool:
    """Return whether Slurm would run such a job on a node."""
    words = JOBS[what]
    named = [word.removeprefix(ON) for word in words if word.startswith(ON)]
    if named and named != [node]:  # the option below would take its place
        return False
    try:
        slurm.run("sbatch", "--test-only", *words, f"{ON}{node}", str(folder / "job.sh"), "1")
    except RuntimeError:
        return False
    return True


def test_slurm_refuses_what_no_policy_chose(slurm: Slurm, folder: Path) -> None:
    """Check that Slurm can refuse what the test above asks."""
    assert is_taken(slurm, folder, "a feature", "n1")
    assert not is_taken(slurm, folder, "a feature", "n2")
    assert not is_taken(slurm, folder, "another partition", "n3")
    assert not is_taken(slurm, folder, "one node", "n1")
