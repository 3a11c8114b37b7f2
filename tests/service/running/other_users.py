"""Requests of another user of this host, from a process of that user over a real socket."""

import os
import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest

NOBODY = 65534
OF_THE_GROUP = 54321
"""The number of a group; the kernel asks for no name."""


def need_root() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can become another user")


@contextmanager
def open_folder() -> Iterator[Path]:
    """A folder that every user may look into; those of pytest are closed."""
    folder = Path(tempfile.mkdtemp(prefix="outrider-test-"))
    try:
        folder.chmod(0o755)
        yield folder
    finally:
        shutil.rmtree(folder)


def as_user(uid: int, groups: Sequence[int], ask: Callable[[], bytes]) -> bytes:
    """Return the result of `ask` in a process of a user and groups, the primary one first."""
    reads, writes = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reads)
            os.setgroups(list(groups))
            os.setgid(groups[0])
            os.setuid(uid)
            try:
                answer = ask()
            except OSError as error:
                answer = type(error).__name__.encode()
            os.write(writes, answer)
        finally:
            os._exit(0)
    os.close(writes)
    with os.fdopen(reads, "rb") as pipe:
        answer = pipe.read()
    os.waitpid(child, 0)
    return answer


def get(path: Path, asked: str = "/api/v1/jobs", host: str = "localhost") -> bytes:
    """The whole answer, head and all, that comes over a Unix socket; at most 60,000 bytes."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
        client.settimeout(20.0)
        client.connect(str(path))
        client.sendall(
            f"GET {asked} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
        )
        answer = b""
        while len(answer) < 60_000 and (more := client.recv(60_000)):
            answer += more
        return answer
