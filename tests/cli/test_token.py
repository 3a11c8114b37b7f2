"""`outrider token`: where it puts the token, who can read it, and what it says."""

import os
import stat
from pathlib import Path

import pytest

from outrider.service.web import read_token
from tests.cli.running import Done, outrider

HEAD = '[adapters.logtail]\npaths = ["EventLog"]\n'


def configured(folder: Path, more: str = "") -> Path:
    state = folder / "state"
    state.mkdir(exist_ok=True)
    file = folder / "outrider.toml"
    file.write_text(f'state_dir = "{state}"\n{more}{HEAD}')
    return file


def made(done: Done, file: Path) -> str:
    """The token in a file that is closed to others, which the command did not print."""
    assert done.code == 0, done
    assert str(file) in done.out
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    token = read_token(file)
    assert token not in done.out + done.err
    return token


def test_it_lies_beside_the_journal_and_shows_names(tmp_path: Path) -> None:
    before = os.umask(0o022)
    try:
        done = outrider("token", "--config", configured(tmp_path))
    finally:
        os.umask(before)
    made(done, tmp_path / "state" / "token")
    assert "created a token, mode 0600" in done.out
    assert "see users' names" in done.out
    assert "reload" in done.out
    assert sorted(p.name for p in (tmp_path / "state").iterdir()) == ["token"]


def test_it_is_the_configured_file_where_there_is_one(tmp_path: Path) -> None:
    file = tmp_path / "http-token"
    config = configured(tmp_path, f'token_file = "{file}"\n')
    done = outrider("token", "--config", config)
    made(done, file)
    assert "The page and the API need this token" in done.out


def test_one_that_is_there_stays_and_is_closed(tmp_path: Path) -> None:
    file = tmp_path / "token"
    first = made(outrider("token", "--file", file), file)
    file.chmod(0o644)
    done = outrider("token", "--file", file)
    assert made(done, file) == first
    assert "which is kept" in done.out
    assert "its mode is 0600 now" in done.out
    assert made(outrider("token", "--file", file, "--new"), file) != first


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    other, link = tmp_path / "other", tmp_path / "token"
    other.write_text("somebody else's\n")
    other.chmod(0o644)
    link.symlink_to(other)
    assert outrider("token", "--file", link).code == 2
    assert stat.S_IMODE(other.stat().st_mode) == 0o644
    made(outrider("token", "--file", link, "--new"), link)
    assert other.read_text() == "somebody else's\n"


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = outrider("token", "--file", tmp_path / "nowhere" / "token")
    assert (done.code, "cannot be written: No such file" in done.err) == (2, True), done


def test_what_systemd_hands_over_is_not_made_here(tmp_path: Path) -> None:
    config = configured(tmp_path, 'token_file = "$CREDENTIALS_DIRECTORY/http-token"\n')
    done = outrider("token", "--config", config)
    assert (done.code, "use --file with the file" in done.err) == (2, True), done


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can make a file for another user")
def test_root_makes_it_for_the_owner_of_the_folder(tmp_path: Path) -> None:
    config = configured(tmp_path)
    os.chown(tmp_path / "state", 65534, 65534)
    made(outrider("token", "--config", config), tmp_path / "state" / "token")
    assert (tmp_path / "state" / "token").stat().st_uid == 65534
