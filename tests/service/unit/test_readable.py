"""Access of the service to files: groups, bound folders, and refusals."""

import grp
import os
from pathlib import Path

import pytest

from outrider.service.unit import installed
from outrider.service.unit.installed import Reading, reading_of

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to groups")
GROUP = next(one for one in grp.getgrall() if one.gr_gid)


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a log in a folder, both readable by all, in a place that the unit shows."""
    monkeypatch.setattr(installed, "TEMPORARY", ())
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_mode & 0o1 == 0:
            folder.chmod(folder.stat().st_mode | 0o1)  # of pytest
    file = tmp_path / "log" / "EventLog"
    file.parent.mkdir(mode=0o755)
    file.write_text("")
    file.chmod(0o644)
    return file


def close(path: Path, mode: int, gid: int = 0) -> None:
    os.chown(path, 0, gid)
    path.chmod(mode)


def test_what_is_open_to_everybody_needs_nothing(log: Path) -> None:
    assert reading_of([str(log)]) == Reading([], [], [])


def test_a_group_opens_the_file_and_the_folder(log: Path) -> None:
    close(log, 0o640, GROUP.gr_gid)
    assert reading_of([str(log)]).groups == [GROUP.gr_name]
    close(log, 0o644)
    close(log.parent, 0o750, GROUP.gr_gid)
    assert reading_of([str(log)]) == Reading([GROUP.gr_name], [], [])


def test_what_is_roots_alone_is_told(log: Path) -> None:
    close(log, 0o640)
    assert reading_of([str(log)]) == Reading([], [], [(str(log), f"{log} has mode 640, owner 0")])
    close(log.parent, 0o700)
    [(path, why)] = reading_of([str(log)]).unreadable
    assert (path, why) == (str(log), f"{log.parent} has mode 700, owner 0")


def test_the_user_reads_its_own(log: Path) -> None:
    os.chown(log, 4242, 0)
    log.chmod(0o600)
    assert reading_of([str(log)], uid=4242).unreadable == []
    assert len(reading_of([str(log)], uid=4243).unreadable) == 1


def test_a_log_that_is_not_there_yet_will_be_in_its_folder(log: Path) -> None:
    close(log.parent, 0o750, GROUP.gr_gid)
    log.unlink()
    assert reading_of([str(log)]) == Reading([GROUP.gr_name], [], [])


def test_a_pattern_is_every_file_that_it_names(log: Path) -> None:
    other = log.with_name("EventLog.2")
    other.write_text("")
    close(other, 0o600)
    assert [path for path, _ in reading_of([f"{log}*"]).unreadable] == [str(other)]


def test_what_the_unit_hides_is_bound_by_its_folder_and_free_above_it(
    log: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(installed, "HOMES", (str(log.parent.parent),))
    close(log.parent.parent, 0o700)
    assert reading_of([str(log)]) == Reading([], [str(log.parent)], [])
    assert reading_of([str(log.parent)]).hidden == [str(log.parent)]
