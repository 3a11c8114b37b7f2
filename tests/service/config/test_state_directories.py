"""A state directory that cannot be used is refused at the start, with exit code 2."""

import subprocess
from pathlib import Path

from tests.service.running.disks import mount, mounted
from tests.service.running.process import OUTRIDER
from tests.service.running.small_site import SmallSite


def refused(site: SmallSite) -> str:
    """Start the daemon, which must end by itself with 2; what it said."""
    done = subprocess.run(
        [OUTRIDER, "run", "--config", site.config],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 2, done.stderr
    return done.stderr.splitlines()[-1]


def test_a_second_daemon_on_the_same_state_directory_is_refused(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1])
    with site.daemon as daemon:
        assert (
            refused(site) == f"outrider: {site.state}: another Outrider uses this state directory"
        )
        site.wait_until_applied()  # and the first goes on
        assert daemon.stop() == 0


def test_a_read_only_state_directory_is_refused(tmp_path: Path) -> None:
    state = tmp_path / "state"
    state.mkdir()
    with mounted(state, "--bind", state):
        mount("-o", "remount,bind,ro", state)
        told = refused(SmallSite(tmp_path))
    assert told.startswith(f"outrider: {state}: cannot be written: Read-only file system; expected")


def test_a_state_directory_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("something else\n")
    assert f"{tmp_path / 'state'}: cannot be written" in refused(SmallSite(tmp_path))


def test_a_journal_that_is_none_is_refused(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.state.mkdir()
    (site.state / "journal.sqlite").write_text("no database\n" * 100)
    assert f"{site.state / 'journal.sqlite'}: cannot open" in refused(site)
