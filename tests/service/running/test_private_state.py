"""The state directory is closed to other users, independent of umask and creator."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.service.host.private_folder import make_private
from tests.service.running.other_users import NOBODY, as_user, need_root, open_folder
from tests.service.running.small_site import SmallSite


@pytest.fixture(autouse=True)
def usual_umask() -> Iterator[None]:
    """Set the mask that most users have."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, str]:
    """Return the permissions of a folder and everything in it, in the style of ls."""
    found = [folder, *folder.rglob("*")]
    return {p.relative_to(folder).as_posix(): stat.filemode(p.stat().st_mode) for p in found}


def check_closed(site: SmallSite) -> dict[str, str]:
    found = modes(site.state)
    for name, mode in found.items():
        closed = {"d": "drwx------", "s": "srw-------"}.get(mode[0], "-rw-------")
        assert mode == closed, (name, found)
    return found


def run_once(site: SmallSite, job: int = 1) -> set[str]:
    """Everything there was in the state directory, while the daemon ran and after it."""
    site.log.run([job])
    with site.daemon as daemon:
        site.wait_until_applied()
        seen = set(check_closed(site))
        assert daemon.stop() == 0
    return seen | set(check_closed(site))


def test_a_daemon_with_the_usual_umask_keeps_its_state_to_itself(tmp_path: Path) -> None:
    seen = run_once(SmallSite(tmp_path))
    assert {"journal.sqlite", "journal.sqlite-wal", "journal.sqlite-shm", "lock"} <= seen
    assert any(name.startswith("snapshots/snapshot-") for name in seen)


def test_what_an_older_daemon_left_open_is_closed(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    run_once(site)
    for path in [site.state, *site.state.rglob("*")]:
        path.chmod(0o755 if path.is_dir() else 0o644)
    run_once(site, job=2)


def test_an_empty_folder_that_was_open_is_closed(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.state.mkdir(mode=0o755)
    run_once(site)


def test_a_folder_that_others_use_too_stays_open_with_a_note(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.state.mkdir(mode=0o755)
    (site.state / "somebody-elses").write_text("keep out of this\n")
    site.log.run([1])
    with site.daemon as daemon:
        site.wait_until_applied()
        (note,) = [n for n in daemon.status()["notes"] if "contains other files" in n]
        assert "somebody-elses" in note
    found = modes(site.state)
    assert found.pop(".") == "drwxr-xr-x"
    assert found.pop("somebody-elses") == "-rw-r--r--"
    assert all("------" in mode for mode in found.values()), found


def test_ours_are_closed_and_what_others_keep_there_stays_with_the_folder(tmp_path: Path) -> None:
    (tmp_path / "snapshots").mkdir(mode=0o755)
    for name in ("token", "journal.sqlite-wal", "theirs", "snapshots/1"):
        (tmp_path / name).write_text("x")
        (tmp_path / name).chmod(0o644)
    (tmp_path / "lock").touch(0o600)
    tmp_path.chmod(0o755)
    (note,) = make_private(tmp_path, {"token", "journal.sqlite*", "snapshots", "lock"})
    assert note.startswith(f"{tmp_path}: other users can read it, and it contains other files")
    assert "('theirs')" in note
    found = {
        str(path.relative_to(tmp_path)): oct(stat.S_IMODE(path.stat().st_mode))
        for path in tmp_path.rglob("*")
    }
    assert found == {
        "snapshots": "0o700", "snapshots/1": "0o600", "token": "0o600", "lock": "0o600",
        "journal.sqlite-wal": "0o600", "theirs": "0o644",
    }  # fmt: skip
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    (tmp_path / "theirs").unlink()
    assert make_private(tmp_path, {"token", "journal.sqlite*", "snapshots", "lock"}) == []
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o700
    assert make_private(tmp_path, ()) == [], "it is closed: nobody need know what is in it"


def test_a_link_is_not_followed_to_somebody_elses_file(tmp_path: Path) -> None:
    folder, other = tmp_path / "state", tmp_path / "other"
    folder.mkdir(mode=0o755)
    other.write_text("mine\n")
    (folder / "token").symlink_to(other)
    make_private(folder, {"token"})
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_what_is_not_ours_to_close_is_a_note() -> None:
    need_root()
    with open_folder() as above:
        folder = above / "state"
        folder.mkdir()
        folder.chmod(0o777)
        output = as_user(NOBODY, [NOBODY], lambda: "\n".join(make_private(folder, ())).encode())
    assert b"other users may be able to read it" in output
