"""Tests of nodes that Slurm powers down and up, and of a job that wakes one."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from outrider.api import events
from tests.peers.beside_slurm.watched import Watched, submit, write_script
from tests.peers.presence import require_peer
from tests.peers.slurm import RELEASES, Slurm, missing_reason

pytestmark = pytest.mark.slurm

SETTINGS: Final = """\
DefMemPerCPU=1000
SuspendProgram=/bin/true
ResumeProgram=/bin/true
SuspendTime=86400
SuspendTimeout=1
ResumeTimeout=2
SlurmctldParameters=idle_on_node_suspend
"""
"""Nodes that are asked to wake up, but do not: nothing starts their slurmd again."""


@pytest.fixture(scope="module", params=RELEASES)
def slurm(request: pytest.FixtureRequest, folder: Path) -> Iterator[Slurm]:
    """Provide a real Slurm of a release that can power nodes down."""
    release: str = request.param
    require_peer(f"Slurm {release}", missing_reason(release))
    write_script(folder)
    running = Slurm(
        folder / release, 2, cpus=4, memory_mib=8000, settings=SETTINGS, release=release
    )
    with running, pytest.MonkeyPatch.context() as patch:
        for name, value in running.environment.items():
            patch.setenv(name, value)
        patch.setenv("SLURM_TIME_FORMAT", "%s")
        yield running


def test_a_sleeping_node_takes_a_job_that_it_loses_if_it_does_not_wake_up(
    slurm: Slurm, folder: Path
) -> None:
    watched = Watched(slurm)
    watched.look()
    slurm.run("scontrol", "update", "NodeName=n2", "State=POWER_DOWN")
    watched.look_until("sleep", lambda: watched.watch.nodes["n2"].asleep)
    # while it is being powered down no job starts there; then it may be woken
    watched.look_until("an open node", lambda: watched.watch.nodes["n2"].usable)
    job = submit(slurm, folder, "--requeue", "-w", "n2", "-t", "5", sleep_s=600)
    watched.look_until("its node", lambda: "started" in watched.kinds_of(job))
    assert watched.watch.nodes["n2"].usable, "it wakes up"
    watched.look_until("its loss", lambda: "evicted" in watched.kinds_of(job), 90.0)
    [lost] = [extra for kind, _, extra in watched.of(job) if kind == "evicted"]
    assert lost == "failed_start", "no program of it ran"
    asleep = [e[1] for e in watched.told if e[2] == "n2" and e[1] in (events.ASLEEP, events.WOKEN)]
    assert asleep[0] == events.ASLEEP
