"""The socket in the file system: who may enter, what it replaces, and what it leaves behind."""

import grp
import os
import socket
import stat
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from outrider.model.errors import ConfigurationError
from outrider.service.web.unix_socket import listening_at

NOBODY = "no-such-group"


@pytest.fixture
def path() -> Iterator[Path]:
    """Yield a path in a folder with a short name: a socket's path has at most 107 bytes."""
    with TemporaryDirectory(prefix="o") as folder:
        yield Path(folder) / "s"


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def listener_at(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    server.bind(str(path))
    return server


def test_members_of_the_group_may_enter_and_it_is_gone_at_the_end(path: Path) -> None:
    own = grp.getgrgid(path.parent.stat().st_gid)
    with listening_at(path, own.gr_name) as listening:
        assert listening.gid == own.gr_gid
        assert (mode_of(path), path.stat().st_gid) == (0o660, own.gr_gid)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.connect(str(path))
    assert not path.exists()


def test_where_there_is_no_such_group_it_is_ours_alone(path: Path) -> None:
    before = os.umask(0o022)
    try:
        with listening_at(path, NOBODY) as listening:
            assert listening.gid is None
            assert mode_of(path) == 0o600
            assert os.umask(0o022) == 0o022, "other files are made as before"
    finally:
        os.umask(before)


def test_what_a_killed_daemon_left_is_replaced(path: Path) -> None:
    listener_at(path).close()
    assert path.exists()
    with listening_at(path, NOBODY), socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.connect(str(path))


def test_one_at_which_somebody_listens_is_left_alone(path: Path) -> None:
    with listener_at(path) as other:
        other.listen(1)
        with pytest.raises(ConfigurationError, match="another process listens there"):
            listening_at(path, NOBODY).__enter__()
        assert path.exists()


def test_another_file_is_left_alone_and_a_path_that_is_too_long_refused(path: Path) -> None:
    path.write_text("mine")
    with pytest.raises(ConfigurationError, match=f'"{path}".*not a socket'):
        listening_at(path, NOBODY).__enter__()
    assert path.read_text() == "mine"
    with pytest.raises(ConfigurationError, match=r"longer than \d+ bytes"):
        listening_at(path.with_name("s" * 200), NOBODY).__enter__()
    with pytest.raises(ConfigurationError, match="expected an unused path"):
        listening_at(path.parent / "no" / "s", NOBODY).__enter__()
    with pytest.raises(ConfigurationError, match="cannot listen there: Not a directory"):
        listening_at(path / "below a file", NOBODY).__enter__()


def test_it_is_given_to_a_group_that_is_not_ours_where_we_may(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("to give a file to another group needs root")
    other = next(group for group in grp.getgrall() if group.gr_gid != path.parent.stat().st_gid)
    with listening_at(path, other.gr_name) as listening:
        assert listening.gid == other.gr_gid
        assert (mode_of(path), path.stat().st_gid) == (0o660, other.gr_gid)


def test_a_socket_that_took_its_place_meanwhile_is_not_removed(path: Path) -> None:
    with listening_at(path, NOBODY):
        path.unlink()
        other = listener_at(path)
    assert path.exists(), "it is the next daemon's"
    other.close()
