"""A disk that fills up or becomes read-only under the running daemon."""

import hashlib
import os
import resource
import subprocess
import time
from pathlib import Path

import pytest

from outrider.journal import verify
from tests.service.running.disks import fill, mounted, relieve, small_disk
from tests.service.running.small_site import SmallSite

FAILURES = "outrider_ledger_failures_total"


def sum_of(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_full_disk_stops_the_recording_loudly_and_loses_nothing(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        site = SmallSite(tmp_path, state=disk / "state", head="snapshot_every_s = 1.0\n")
        site.log.run([1, 2])
        with site.daemon as daemon:
            site.wait_until_applied()
            assert daemon.get("/readyz") == {"ready": True, "reasons": []}
            fill(disk)
            site.log.run(range(3, 2_000))
            site.wait_until_applied()  # events go on being read
            status = daemon.wait_until("not recording", lambda s: not s["ledger"]["recording"])
            assert "full" in status["ledger"]["failure"]
            ready = daemon.get("/readyz")
            assert not ready["ready"]
            assert "not recording: " in ready["reasons"][0]
            assert "full" in ready["reasons"][0]
            assert site.metrics()[FAILURES] > 0
            daemon.wait_until("logged", lambda _: "recording_stopped" in site.log_text())
            assert "[critical ] recording_stopped" in site.log_text()
            assert site.recorded() != site.log.counts

            before = sum_of(site.log.path)
            site.log.run(range(2_000, 2_050))
            untouched = sum_of(site.log.path)
            site.wait_until_applied()
            assert sum_of(site.log.path) == untouched != before

            relieve(disk)
            daemon.wait_until("recording again", lambda s: s["ledger"]["recording"])
            assert daemon.get("/readyz")["ready"]
            site.kill()  # what was kept is in the journal by now
            daemon.start()
            status = site.wait_until_applied()
            assert status["jobs"]["completed"] == 2_049
            assert status["adapters"][0]["duplicates"] == 0
            assert daemon.stop() == 0
        assert site.recorded() == site.log.counts
        report = verify(site.state / "journal.sqlite")
        assert report.ok, report.as_text()


def test_a_daemon_on_a_full_disk_stops_in_time_and_the_next_start_resumes(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 4) as disk:
        site = SmallSite(tmp_path, state=disk / "state")
        site.log.run([1])
        with site.daemon as daemon:
            site.wait_until_applied()
            fill(disk)
            site.log.run(range(2, 50))
            site.wait_until_applied()
            daemon.wait_until("not recording", lambda s: not s["ledger"]["recording"])
            began = time.monotonic()
            assert daemon.stop() == 0
            assert time.monotonic() - began < 5.0
            assert "entries_lost" in site.log_text()
            relieve(disk)
            daemon.start()
            status = site.wait_until_applied()
            assert status["jobs"]["completed"] == 49
            assert daemon.stop() == 0
        assert site.recorded() == site.log.counts


def test_an_input_for_which_there_is_no_room_is_read_again_after_a_stop(tmp_path: Path) -> None:
    """Submit more rows than the writer keeps, so that the source is not read."""
    with small_disk(tmp_path / "disk", 4) as disk:
        site = SmallSite(tmp_path, state=disk / "state")
        site.log.run([1])
        room = tmp_path / "room"
        room.mkdir()
        (room / "sitecustomize.py").write_text(
            "import outrider.journal.writer as writer\n"
            "writer.Writer.__init__.__kwdefaults__['queue_rows'] = 50\n"
        )
        path = os.pathsep.join([str(room), os.environ.get("PYTHONPATH", "")])
        site.daemon.environ["PYTHONPATH"] = path
        with site.daemon as daemon:
            site.wait_until_applied()
            fill(disk)
            site.log.run(range(2, 1_500))
            daemon.wait_until("not recording", lambda s: not s["ledger"]["recording"])
            for first in range(1_500, 1_700, 40):
                site.log.run(range(first, first + 40))
                time.sleep(0.3)
            daemon.wait_until("holding back", lambda _: "input_paused" in site.log_text())
            assert daemon.stop() == 0
            relieve(disk)
            daemon.environ.clear()
            daemon.start()
            status = site.wait_until_applied()
            assert status["adapters"][0]["duplicates"] == 0
            assert daemon.stop() == 0
        assert site.recorded() == site.log.counts


def test_a_limit_on_file_size_is_treated_like_a_full_disk(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied()
        assert daemon.process is not None
        pid, unlimited = daemon.process.pid, (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
        size = (site.state / "journal.sqlite-wal").stat().st_size
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))
        site.log.run(range(2, 300))
        site.wait_until_applied()
        status = daemon.wait_until("not recording", lambda s: not s["ledger"]["recording"])
        assert "limits on file size" in status["ledger"]["failure"]
        resource.prlimit(pid, resource.RLIMIT_FSIZE, unlimited)
        daemon.wait_until("recording again", lambda s: s["ledger"]["recording"])
        assert daemon.stop() == 0
    assert site.recorded() == site.log.counts


def test_a_disk_that_becomes_read_only_is_treated_like_a_full_one(tmp_path: Path) -> None:
    """Remount read-only, as the kernel does after an error on ext4 with errors=remount-ro."""
    image = tmp_path / "image"
    with image.open("wb") as file:
        file.truncate(24 << 20)
    words = ["mkfs.ext4", "-q", "-e", "remount-ro", str(image)]
    try:
        subprocess.run(words, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no ext4 can be made here: {error}")
    with mounted(tmp_path / "disk", "-o", "loop", image) as disk:
        source = subprocess.run(
            ["findmnt", "-no", "SOURCE", disk], capture_output=True, text=True, check=True
        ).stdout.strip()
        trigger = Path(f"/sys/fs/ext4/{Path(source).name}/trigger_fs_error")
        if not os.access(trigger, os.W_OK):
            pytest.skip(f"{trigger} cannot be written here: no way to make the disk fail")
        site = SmallSite(tmp_path, state=disk / "state")
        site.log.run([1])
        with site.daemon as daemon:
            site.wait_until_applied()
            trigger.write_text("a test")
            site.log.run(range(2, 30))
            site.wait_until_applied()
            status = daemon.wait_until("not recording", lambda s: not s["ledger"]["recording"])
            assert str(site.state) in status["ledger"]["failure"]
            assert not daemon.get("/readyz")["ready"]
            assert daemon.stop() == 0
