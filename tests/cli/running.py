"""Running the command line: in this process, or as the command a shell would start."""

import io
import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any, NamedTuple

from outrider.cli.entry import main

COMMAND = Path(sys.executable).with_name("outrider")
WITHIN_S = 180.0
"""Time limit of a command; generous, because other tests may slow the machine."""


class Done(NamedTuple):
    """Result of a command: exit code and output."""

    code: int
    out: str
    err: str

    def json(self) -> Any:
        """The one JSON document on standard output, of a command that ended well."""
        assert self.code == 0, self
        return json.loads(self.out)


def outrider(*words: object) -> Done:
    """Run a command in this process."""
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with redirect_stdout(out), redirect_stderr(err):
        code = main([str(word) for word in words])
    return Done(code, _text(out), _text(err))


def _text(stream: io.TextIOWrapper) -> str:
    stream.flush()
    stream.seek(0)
    return stream.read()


def shell(*words: object, **environment: str) -> Done:
    """Run the installed command as a process of its own."""
    assert COMMAND.exists(), f"{COMMAND} is not there: install the package first"
    done = subprocess.run(
        [COMMAND, *map(str, words)],
        capture_output=True, text=True, timeout=WITHIN_S, check=False,
        env={**os.environ, **environment}, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return Done(done.returncode, done.stdout, done.stderr)


@contextmanager
def interruptible() -> Iterator[None]:
    """Let processes that are started in this block be interrupted.

    A shell starts what runs in its background with SIGINT ignored, and processes inherit that.
    """
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def get(url: str) -> Any:
    """The JSON that a daemon answers."""
    with urllib.request.urlopen(url, timeout=10) as answer:
        return json.load(answer)
