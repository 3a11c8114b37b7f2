"""A backup of a running daemon's journal is enough to start another that knows the same."""

import shutil
import sqlite3
import subprocess
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from outrider.journal import verify
from tests.service.restarting.test_killed_daemon import decided, learned
from tests.service.running.process import OUTRIDER
from tests.service.running.small_site import LOG_TABLE, SmallSite

POLICIES = "\n[policies.bandit]\n[policies.lowest_watts]\n"


def by_command(journal: Path, copy: Path) -> None:
    """Restore a backup as documented."""
    words = [str(OUTRIDER), "ledger", "backup", str(journal), str(copy)]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert "copy of" in done.stdout


def by_sqlite(journal: Path, copy: Path) -> None:
    """SQLite's own online backup, as ``sqlite3 journal.sqlite '.backup copy.sqlite'`` does it."""
    with closing(sqlite3.connect(journal)) as source, closing(sqlite3.connect(copy)) as target:
        source.backup(target)


@pytest.mark.parametrize("back_up", [by_command, by_sqlite])
def test_a_daemon_started_from_a_backup_has_the_same_ledger(
    tmp_path: Path, back_up: Callable[[Path, Path], None]
) -> None:
    first = SmallSite(tmp_path, tables=LOG_TABLE + POLICIES)
    copy = tmp_path / "copy.sqlite"
    with first.daemon as daemon:
        for job in range(1, 30):
            first.log.run([job])
        first.wait_until_applied()
        daemon.wait_until("recorded", lambda s: s["ledger"]["rows"] == s["ledger"]["last_seq"])
        back_up(first.state / "journal.sqlite", copy)
        assert verify(copy).ok
        first.log.run(range(30, 40))  # after the backup: known to the log alone
        before = first.wait_until_applied()
        assert daemon.stop() == 0
    state = tmp_path / "restored"
    state.mkdir()
    shutil.copy(copy, state / "journal.sqlite")
    second = SmallSite(tmp_path, state=state, tables=LOG_TABLE + POLICIES)
    second.log.counts.update(first.log.counts)
    with second.daemon as daemon:
        after = second.wait_until_applied()
        assert daemon.stop() == 0
    for key in ("jobs", "starts", "evictions", "goodput_s"):
        assert after[key] == before[key], key
    with first.journal() as whole, second.journal() as restored:
        assert len(decided(whole)) > 0
        assert decided(restored) == decided(whole)
        assert learned(restored) == learned(whole)
        assert [run for _, run in restored.runs()] == [run for _, run in whole.runs()]
        assert len(list(whole.runs())) == before["jobs"]["completed"]
    assert verify(state / "journal.sqlite").ok
