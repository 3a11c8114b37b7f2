"""Tests of faults while leases are active on a real Slurm: all are noted, every job runs."""

import time
from collections.abc import Sequence
from pathlib import Path

import pytest

from outrider.api import PeerError
from outrider.service.daemon.levers import UndoFile
from outrider_adapters.slurm.acting.job_updates import Edit, Scontrol
from tests.peers.beside_slurm.acting_daemon import LEASE_S, SLACK_S, acting, kept, runs
from tests.peers.beside_slurm.levers import Site
from tests.peers.beside_slurm.watched import submit
from tests.peers.slurm import Slurm
from tests.service.running.disks import fill, relieve, small_disk

pytestmark = pytest.mark.slurm


def test_a_controller_that_forgets_a_deferral_is_told_it_again(
    slurm: Slurm, folder: Path, full: list[str]
) -> None:
    """Kill a controller that has not saved the changes of the last seconds."""
    job = submit(slurm, folder)
    time.sleep(6)  # the job itself is saved
    site = Site(slurm, lease_s=60)
    assert site.defer(job) == {}
    until_s = site.eligible_s(job)
    slurm.kill_controller()
    with pytest.raises(PeerError, match=r"sdiag: .*slurm"):
        site.defer(job)
    assert site.noted(job).until_s == until_s, "it may stand"
    slurm.start_controller()
    known_s = site.eligible_s(job)
    assert known_s in (until_s, site.noted(job).before["eligible_s"])
    assert site.defer(job) == {}, "whether it was forgotten or not"
    assert site.ahead_s(job) > 30
    assert site.withdraw(job) == {}
    slurm.run("scancel", *full)
    slurm.wait_until("its run", lambda: {job} <= set(slurm.jobs("R", "CD")), SLACK_S)


def test_a_controller_that_dies_in_the_middle_of_a_renewal_is_asked_for_it_again(
    slurm: Slurm, folder: Path, full: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    job = submit(slurm, folder)
    site = Site(slurm, lease_s=60)
    assert site.defer(job) == {}
    until_s, noted = site.eligible_s(job), site.noted(job)
    time.sleep(6)  # the deferral is saved, so that its renewal alone is lost

    def update(self: Scontrol, jobs: Sequence[str], edit: Edit) -> None:
        slurm.kill_controller()
        try:
            asked(self, jobs, edit)
        finally:
            slurm.start_controller()

    asked = Scontrol.update
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(Scontrol, "update", update)
        with pytest.raises(PeerError, match="scontrol: "):
            site.defer(job)
    assert site.eligible_s(job) == until_s
    assert site.noted(job) == noted
    assert site.defer(job) == {}
    assert site.eligible_s(job) > until_s
    assert full


def test_a_controller_that_is_silent_for_longer_than_a_lease(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path) as daemon:
        jobs = [submit(slurm, folder, "-A", "alice", sleep_s=600) for _ in range(2)]
        kept(daemon, 2)
        slurm.run("scancel", *full)
        slurm.wait_until("free nodes", lambda: not slurm.jobs("R", "CG"))
        with slurm.silenced():
            silent_s = time.monotonic()
            status = daemon.wait_until("word of it", lambda s: s["levers"][0]["problem"] != "")
            # a command of Slurm gives up after ten seconds, as we do: whichever is first
            problem = status["levers"][0]["problem"]
            assert "did not answer within 10 s" in problem or "Socket timed out" in problem
            down = daemon.wait_until("an old look", lambda s: s["adapters"][0]["input_age_s"] > 10)
            assert "not answer" in down["adapters"][0]["note"]
            while time.monotonic() < silent_s + 1.5 * LEASE_S:
                time.sleep(0.5)
            daemon.kill()
        slurm.wait_until("their runs", lambda: runs(slurm, *jobs), LEASE_S + SLACK_S)


def test_a_daemon_that_stands_still_for_longer_than_a_lease_keeps_nobody(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    with acting(slurm, tmp_path) as daemon:
        job = submit(slurm, folder, "-A", "alice", sleep_s=600)
        kept(daemon, 1)
        slurm.run("scancel", *full)
        with daemon.suspended():
            slurm.wait_until("its run", lambda: runs(slurm, job), LEASE_S + SLACK_S)
        daemon.wait_until("its start", lambda s: s["jobs"]["running"] == 1)
        assert daemon.status()["levers"][0]["standing"]["defer"] == 0
        assert runs(slurm, job)


def test_on_a_full_disk_nothing_is_changed_that_cannot_be_noted(
    slurm: Slurm, folder: Path, tmp_path: Path, full: list[str]
) -> None:
    jobs = [submit(slurm, folder) for _ in range(40)]
    kept_job, *others = jobs
    with small_disk(tmp_path / "disk", 1) as disk:
        site = Site(slurm, UndoFile(disk, "slurm"))
        assert site.defer(kept_job) == {}
        until_s = site.eligible_s(kept_job)
        noted = dict(site.adapter.undo_log.entries)
        fill(disk)
        full_disk = "undo.sqlite cannot be read or written, so nothing is changed: "
        for call in (site.defer, site.withdraw):
            with pytest.raises(PeerError, match=full_disk):
                call(*jobs)
        assert site.eligible_s(kept_job) == until_s
        assert not any(site.ahead_s(job) for job in others)
        assert site.adapter.undo_log.entries == noted
        assert UndoFile(disk, "slurm").entries == noted
        slurm.run("scancel", *full)
        began = {kept_job, *others[:2]}
        slurm.wait_until("their runs", lambda: began <= set(slurm.jobs("R", "CD")), LEASE_S + 9.0)
        relieve(disk)
        job = submit(slurm, folder, "--begin=now+5")
        assert site.defer(job) == {}, "and it goes on once there is room"
