"""The state directory is closed to other users, independent of umask and creator."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from outrider.model.errors import ConfigurationError, LedgerError
from outrider.service.config.declarations import Config
from outrider.service.core.mode_limit import ModeLimit, keep_limit, limit_of
from outrider.service.core.user_privacy import load_key
from outrider.service.host.private_folder import (
    make_private,
    open_owned,
    read_owned,
    refuse_strangers,
)
from outrider.service.web.access import Access
from tests.service.running.other_users import NOBODY, as_user, need_root, open_folder
from tests.service.running.process import HANGS_AFTER_S
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


# -- owners ----------------------------------------------------------------------------------------

NAMES = {"token", "lock", "snapshots", "outrider.sock"}


def reason(folder: Path) -> str:
    """Return why a folder is refused; empty if it is not."""
    try:
        refuse_strangers(folder, NAMES)
    except LedgerError as error:
        return str(error)
    return ""


def test_a_folder_of_ours_is_used_and_closed_to_others_first(tmp_path: Path) -> None:
    state = tmp_path / "state"
    assert reason(state) == "", "the daemon creates it"
    (state / "snapshots").mkdir(parents=True)
    (state / "snapshots" / "1").touch(0o600)
    (state / "token").touch(0o600)
    state.chmod(0o775)
    assert reason(state) == ""
    assert stat.S_IMODE(state.stat().st_mode) == 0o755
    (tmp_path / "link").symlink_to(state)
    assert reason(tmp_path / "link") == "", "a link of ours to a folder of ours"


def test_a_folder_that_others_write_and_use_is_refused(tmp_path: Path) -> None:
    (tmp_path / "theirs").touch()
    tmp_path.chmod(0o770)
    assert f"{tmp_path}: not used, because other users can write there" in reason(tmp_path)
    tmp_path.chmod(0o1777)
    assert reason(tmp_path) == "", "like /tmp, where each user has files"


def test_files_in_the_place_of_ours_are_refused(tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.symlink_to(tmp_path / "elsewhere")
    assert f"{token}: not used, because it is a link" in reason(tmp_path)
    token.unlink()
    os.mkfifo(token, 0o600)
    assert "it is not a regular file" in reason(tmp_path)
    token.unlink()
    token.touch()
    token.chmod(0o620)
    assert "other users can write it" in reason(tmp_path)
    token.chmod(0o644)
    (tmp_path / "snapshots").mkdir()
    (tmp_path / "snapshots" / "1").symlink_to(token)
    assert "snapshots/1: not used, because it is a link" in reason(tmp_path)


def test_of_another_user_nothing_is_believed() -> None:
    need_root()
    with open_folder() as folder:
        folder.chmod(0o1777)
        for name in NAMES:
            (folder / name).touch(0o600)
            os.chown(folder / name, NOBODY, NOBODY)
            assert f"{name}: not used, because it belongs to user nobody" in reason(folder)
            os.chown(folder / name, 0, 0)
        assert reason(folder) == ""
        os.chown(folder, NOBODY, NOBODY)
        assert "not used, because it belongs to user nobody" in reason(folder)
        by_owner = as_user(NOBODY, [NOBODY], lambda: b"found: " + reason(folder).encode())
        assert by_owner == b"found: ", "files of root's are believed, too"
        os.chown(folder, 0, 0)
        folder.chmod(0o777)
        by_any = as_user(NOBODY, [NOBODY], lambda: reason(folder).encode())
        assert b"other users can write there" in by_any, "nobody but root may close it"
        link = folder.with_name(f"{folder.name}-link")
        link.symlink_to(folder)
        folder.chmod(0o700)
        try:
            assert reason(link) == ""
            os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
            assert "it belongs to user nobody" in reason(link)
        finally:
            link.unlink()


def test_what_is_read_later_is_examined_again(tmp_path: Path) -> None:
    for name in ("mode-limit.json", "pseudonym.key", "token"):
        (tmp_path / f"of-{name}").write_text('{"most":"observe","at_s":1,"was":"","by":"x"}' * 2)
        (tmp_path / name).symlink_to(tmp_path / f"of-{name}")
        with pytest.raises(OSError, match=name):
            read_owned(tmp_path / name)
    limit = limit_of(tmp_path)
    assert limit is not None
    assert (limit.most, "cannot be read" in limit.why) == ("shadow", True)
    with pytest.raises(LedgerError, match="key of pseudonyms"):
        load_key(tmp_path / "pseudonym.key")
    assert not Access.configured(Config(), tmp_path).wants_token
    (tmp_path / "mode-limit.json").unlink()
    (tmp_path / "mode-limit.part").symlink_to(tmp_path / "of-token")
    keep_limit(ModeLimit("observe", 1.0, "shadow", "command"), tmp_path)
    assert limit_of(tmp_path) == ModeLimit("observe", 1.0, "shadow", "command")
    assert "most" in (tmp_path / "of-token").read_text(), "the link was not followed"
    (tmp_path / "token").unlink()
    (tmp_path / "token").write_text("0123456789abcdef")
    assert Access.configured(Config(), tmp_path).wants_token
    (tmp_path / "token").chmod(0o666)
    assert not Access.configured(Config(), tmp_path).wants_token
    with pytest.raises(ConfigurationError, match=r"token_file.*other users can write it"):
        Access.configured(Config(token_file=str(tmp_path / "token")), tmp_path)


def test_root_reads_what_the_owner_of_the_folder_wrote() -> None:
    need_root()
    with open_folder() as folder:
        file = folder / "undo.sqlite"
        os.close(open_owned(file, os.O_WRONLY | os.O_CREAT))
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        os.chown(file, NOBODY, NOBODY)
        with pytest.raises(PermissionError, match="belongs to user nobody"):
            read_owned(file)
        os.chown(folder, NOBODY, NOBODY)
        assert read_owned(file) == b""


def test_a_daemon_refuses_a_planted_link_and_does_not_follow_it(tmp_path: Path) -> None:
    site = SmallSite(tmp_path)
    site.log.run([1])
    site.state.mkdir(mode=0o700)
    victim = tmp_path / "victim"
    victim.write_text("precious")
    (site.state / "lock").symlink_to(victim)
    process = site.daemon.spawn()
    assert process.wait(HANGS_AFTER_S) == 2
    assert "lock: not used, because it is a link" in site.daemon.log.read_text()
    assert victim.read_text() == "precious"
