"""Listeners in the place of the daemon: nothing is sent to another user of the host."""

import ipaddress
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from outrider.cli import http_client
from outrider.cli.daemon import DaemonAddress, trusted_at, trusted_with
from outrider.cli.http_client import listeners
from outrider.model.errors import PeerError
from tests.fixtures.patience import patient
from tests.service.running.other_users import NOBODY, need_root, open_folder

TOKEN = "0123456789abcdef0123456789abcdef"
ANSWER = b'HTTP/1.1 200 OK\r\nContent-Length: 17\r\n\r\n{"mode":"shadow"}'


@contextmanager
def listening(uid: int, bound: socket.socket) -> Iterator[list[bytes]]:
    """A server of another user; afterwards the list has what it received.

    The kernel reports the user who created a socket, so the child creates it anew.
    """
    kind, address = bound.family, bound.getsockname()
    bound.close()
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setgroups([])
            os.setgid(uid)
            os.setuid(uid)
            server = socket.socket(kind, socket.SOCK_STREAM)
            server.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            server.settimeout(patient(30.0))
            server.bind(address)
            server.listen()
            os.write(writes, b"ready\n")
            while True:
                client, _ = server.accept()
                client.settimeout(patient(30.0))
                os.write(writes, client.recv(65536) + b"\n")
                client.sendall(ANSWER)
                client.close()
        finally:
            os._exit(0)
    os.close(writes)
    received: list[bytes] = []
    with os.fdopen(reads, "rb") as pipe:
        assert pipe.readline() == b"ready\n"
        try:
            yield received
        finally:
            os.kill(child, 9)
            os.waitpid(child, 0)
            received.append(pipe.read())


def tcp(host: str = "127.0.0.1") -> socket.socket:
    """A socket at a free port."""
    found = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_STREAM)
    found.bind((host, 0))
    return found


def token_file(folder: Path) -> Path:
    path = folder / "token"
    path.write_text(TOKEN)
    path.chmod(0o600)
    return path


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0", "::"])
def test_the_kernel_reports_who_listens_at_a_port(host: str) -> None:
    with tcp(host) as server:
        port = server.getsockname()[1]
        assert listeners(port) == {}
        server.listen()
        assert listeners(port) == {ipaddress.ip_address(host): {os.geteuid()}}


def test_a_token_reaches_no_other_user_who_took_the_port(tmp_path: Path) -> None:
    need_root()
    bound = tcp()
    url = f"http://127.0.0.1:{bound.getsockname()[1]}"
    address = DaemonAddress(url, str(token_file(tmp_path)))
    with listening(NOBODY, bound) as received, pytest.raises(PeerError) as refused:
        address.ask("/api/v1/status")
    assert "user nobody listens there, who is not trusted, so nothing is sent" in str(refused.value)
    assert b"".join(received).strip() == b""


def test_the_daemons_user_gets_it(tmp_path: Path) -> None:
    need_root()
    bound = tcp()
    url = f"http://localhost:{bound.getsockname()[1]}"
    state = tmp_path / "state"
    state.mkdir()
    os.chown(state, NOBODY, NOBODY)
    address = DaemonAddress(url, str(token_file(tmp_path)), state=state)
    with listening(NOBODY, bound) as received:
        assert address.ask("/api/v1/status") == {"mode": "shadow"}
    assert f"Authorization: Bearer {TOKEN}".encode() in received[0]


def test_who_owns_the_file_of_the_token_has_it_already(tmp_path: Path) -> None:
    need_root()
    file = token_file(tmp_path)
    assert trusted_with(file, None) == {0, os.geteuid()}
    os.chown(file, NOBODY, NOBODY)
    assert trusted_with(file, tmp_path / "none") == {0, os.geteuid(), NOBODY}


def test_a_listener_that_the_kernel_does_not_report_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_client, "listeners", lambda port: {})
    with tcp() as server:
        server.listen()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PeerError, match="an unknown user listens there"):
            DaemonAddress(url, str(token_file(tmp_path))).ask("/api/v1/status")


def test_another_user_who_listened_a_moment_before_gets_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = ipaddress.ip_address("127.0.0.1")
    reported = iter([{here: {NOBODY}}, {here: {os.geteuid()}}])
    monkeypatch.setattr(http_client, "listeners", lambda port: next(reported))
    with tcp() as server:
        server.listen()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with pytest.raises(PeerError, match="listens there, who is not trusted"):
            DaemonAddress(url, str(token_file(tmp_path))).ask("/api/v1/status")


def test_a_socket_of_another_user_is_not_believed() -> None:
    need_root()
    with open_folder() as folder:
        folder.chmod(0o1777)  # like /tmp
        path = folder / "outrider.sock"
        bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        bound.bind(str(path))
        path.unlink()
        address = DaemonAddress(f"unix:{path}")
        with listening_at(path) as received, pytest.raises(PeerError, match="user nobody listens"):
            address.ask("/api/v1/status")
        assert b"".join(received).strip() == b""
        bound.close()


@contextmanager
def listening_at(path: Path) -> Iterator[list[bytes]]:
    """A server of another user at a path that is free."""
    place = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    place.bind(str(path))
    path.unlink()
    with listening(NOBODY, place) as received:
        yield received


def test_the_owner_of_the_sockets_folder_is_believed_where_no_other_writes() -> None:
    need_root()
    with open_folder() as folder:
        os.chown(folder, NOBODY, NOBODY)
        path = folder / "outrider.sock"
        assert trusted_at(path) == {0, os.geteuid(), NOBODY}
        with listening_at(path) as received:
            assert DaemonAddress(f"unix:{path}").ask("/api/v1/status") == {"mode": "shadow"}
        assert received[0].startswith(b"GET /api/v1/status")
        folder.chmod(0o775)
        assert trusted_at(path) == {0, os.geteuid()}
        assert trusted_at(path, folder) == {0, os.geteuid(), NOBODY}, "where it is the state_dir"
