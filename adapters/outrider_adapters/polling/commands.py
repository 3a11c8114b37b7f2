"""Commands of a batch system, run one at a time, and ended when they are silent for too long."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from outrider.api import PeerError

_MOST_SAID: Final = 300


class CommandError(PeerError):
    """A command failed or did not answer in time; the message says which and what it said."""


class Commands:
    """Runs commands.

    Args:
        folder: of the commands; None: as PATH has them.
        environment: in which they run.
        within_s: after so many seconds a command that is silent is ended.
    """

    def __init__(self, folder: str | None, environment: Mapping[str, str], within_s: float) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._within_s = within_s
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, program: str, *words: str, may_fail: bool = False) -> str:
        """What the command printed.

        Args:
            program: its name.
            words: its arguments.
            may_fail: what it printed counts, however it ended.

        Raises:
            CommandError: it is not there, failed, or did not end in time.
        """
        path = program if self._folder is None else str(Path(self._folder) / program)
        try:
            process = subprocess.Popen(  # noqa: S603 - words of our own
                [path, *words],
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                process_group=0,  # an interrupt at the terminal is for the daemon, which ends it
            )
        except OSError as error:
            raise CommandError(f"{path} cannot be run: {error.strerror}") from error
        self._running = process
        try:
            if self._closed:  # the daemon was stopped a moment ago
                self.close()
            said, complained = process.communicate(timeout=self._within_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise CommandError(f"{program} did not answer within {self._within_s:g} s") from None
        finally:
            self._running = None
        if process.returncode != 0 and not may_fail:
            why = _one_line(complained) or f"it ended with {process.returncode}"
            raise CommandError(f"{program}: {why}")
        return said.decode("utf-8", "replace")

    def close(self) -> None:
        """End a command that runs, and every one that is begun from now on. From any thread."""
        self._closed = True
        if (process := self._running) is not None:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)


def _one_line(complained: bytes) -> str:
    words = complained.decode("utf-8", "replace")[: 4 * _MOST_SAID]
    shown = "".join(c if c.isprintable() else " " for c in words)
    return " ".join(shown.split())[:_MOST_SAID]
