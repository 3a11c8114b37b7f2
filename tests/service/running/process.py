"""The real daemon in a separate process, as systemd would run it."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.fixtures.patience import patient

OUTRIDER = Path(sys.executable).with_name("outrider")
URL = re.compile(r"daemon_started.*?url=(\S+)|\"url\": ?\"([^\"]+)\"")
READY_WITHIN_S = patient(60.0)
STOP_WITHIN_S = 5.0
HANGS_AFTER_S = patient(150.0)
"""Timeout in seconds; events usually take seconds, but the machine may be busy."""


class DaemonProcess:
    """``outrider run`` on a configuration file, with its log in a file next to it.

    Args:
        config: the configuration file; it should say ``listen = "127.0.0.1:0"``.
        environ: additions to the environment.
    """

    def __init__(self, config: Path, environ: dict[str, str] | None = None) -> None:
        self.config = config
        self.environ = environ or {}
        self.log = config.with_suffix(".log")
        self.url = ""
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if error is not None and self.log.exists():
            error.add_note(self.log.read_text(errors="replace")[-3000:])
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()

    def spawn(self) -> subprocess.Popen[bytes]:
        """Start it and do not wait for anything."""
        self.url = ""  # the port is another one
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [OUTRIDER, "run", "--config", self.config],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env={**os.environ, "NO_COLOR": "1", **self.environ},
            )
        return self.process

    def start(self, within_s: float = READY_WITHIN_S) -> None:
        """Start it and return when it is ready."""
        seen = self.log.stat().st_size if self.log.exists() else 0
        process = self.spawn()
        deadline_s = time.monotonic() + within_s
        while time.monotonic() < deadline_s:
            with self.log.open("rb") as log:
                log.seek(seen)
                found = URL.search(log.read().decode(errors="replace"))
            if found:
                self.url = found[1] or found[2]
                return
            assert process.poll() is None, self.log.read_text()[-3000:]
            time.sleep(0.05)
        raise AssertionError(f"not ready in {within_s:g} s:\n{self.log.read_text()[-3000:]}")

    def stop(self) -> int:
        """Ask it to stop, as systemd does; returns its exit code."""
        assert self.process is not None
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(STOP_WITHIN_S)

    def kill(self) -> None:
        """Kill the process, like a power failure."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()

    @contextmanager
    def suspended(self) -> Iterator[None]:
        """Suspend the process within the block."""
        assert self.process is not None
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)

    def get(self, path: str) -> Any:
        """The JSON answer of a path; an HTTP error's answer too."""
        return json.loads(self.text(path))

    def text(self, path: str) -> str:
        """The text of a path; an HTTP error's too."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=10) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            return error.read().decode()

    def status(self) -> dict[str, Any]:
        """Return the answer of ``/api/v1/status``."""
        status: dict[str, Any] = self.get("/api/v1/status")
        return status

    def wait_until(
        self, what: str, holds: Callable[[dict[str, Any]], bool], within_s: float = HANGS_AFTER_S
    ) -> dict[str, Any]:
        """Wait until the status fulfils a condition; returns it.

        Raises:
            AssertionError: it did not in time; shows the status and the end of the log.
        """
        began_s = time.monotonic()
        while True:
            status = self.status()
            if holds(status):
                return status
            waited_s = time.monotonic() - began_s
            if waited_s > within_s:
                shown = json.dumps({k: v for k, v in status.items() if k != "policies"}, indent=1)
                log = self.log.read_text()[-2000:]
                raise AssertionError(f"not {what} within {within_s:g} s:\n{shown}\n{log}")
            time.sleep(min(0.5, max(0.05, 0.1 * waited_s)))  # each look costs both CPU
