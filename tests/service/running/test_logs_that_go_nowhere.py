"""Log lines that cannot be written: a full disk, a closed pipe, no stream at all."""

import contextlib
import os
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO

import pytest

from tests.free_port import free_port
from tests.service.running.process import OUTRIDER, STOP_WITHIN_S
from tests.service.running.small_site import HEAD, LOG_TABLE, SmallSite


@contextlib.contextmanager
def full_disk() -> Iterator[IO[bytes]]:
    with Path("/dev/full").open("wb") as full:
        yield full


@contextlib.contextmanager
def reader_gone() -> Iterator[IO[bytes]]:
    reading, writing = os.pipe()
    os.close(reading)
    with os.fdopen(writing, "wb") as pipe:
        yield pipe


@contextlib.contextmanager
def no_stream() -> Iterator[None]:
    yield None


STREAMS = {"full disk": full_disk, "reader gone": reader_gone, "closed": no_stream}


@pytest.mark.parametrize("how", STREAMS)
@pytest.mark.parametrize("style", ["auto", "json"])
def test_the_daemon_lives_on_without_a_log(how: str, style: str, tmp_path: Path) -> None:
    site, port = SmallSite(tmp_path), free_port()
    head = HEAD.format(state=site.state).replace(":0", f":{port}")
    text = head + f'log_format = "{style}"\n' + LOG_TABLE.replace("{log}", str(site.log.path))
    site.config.write_text(text)
    site.log.path.touch()
    with STREAMS[how]() as stream:
        closing = ["sh", "-c", 'exec "$0" "$@" 2>&-'] if stream is None else []
        daemon = subprocess.Popen(
            [*closing, OUTRIDER, "run", "--config", site.config],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=stream,
            # as a service manager starts it: what is not taken waits until the very end
            env={k: v for k, v in os.environ.items() if k != "PYTHONUNBUFFERED"},
        )
    try:
        site.daemon.url = f"http://127.0.0.1:{port}"
        until(lambda: healthy(port) or daemon.poll() is not None)
        assert daemon.poll() is None, f"it ended with {daemon.returncode}"
        site.log.submit(1, 2)
        with site.log.path.open("a") as log:
            log.write("no record of HTCondor\n...\n" * 20)  # causes a line of the log
        site.daemon.wait_until("jobs come in", lambda s: s["jobs"]["queued"] == 2, 30.0)
        assert healthy(port)
        daemon.terminate()
        assert daemon.wait(STOP_WITHIN_S + 5) == 0
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()


def healthy(port: int) -> bool:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def until(holds: Callable[[], bool], within_s: float = 30.0) -> None:
    deadline_s = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < deadline_s
        time.sleep(0.1)
