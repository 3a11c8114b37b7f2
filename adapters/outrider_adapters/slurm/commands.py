"""Slurm's commands, run with a limit of our own, and their output in words that users cannot write.

What users write into a job (its name, comment, folder, command) may hold anything, so no field of
it is ever asked for. Fields are parted by a control character that neither Slurm nor an
administrator uses in the others.
"""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from outrider.api import PeerError
from outrider_adapters.slurm.settings import SlurmSettings

SEPARATOR: Final = "\x1f"

_OURS: Final = ("SQUEUE_", "SACCT_", "SINFO_", "SCONTROL_", "SLURM_CLUSTERS", "SLURM_TIME_FORMAT")
"""Beginnings of variables by which a shell changes what the commands print."""

_MOST_SAID: Final = 300


class SlurmDownError(PeerError):
    """A command failed or did not answer in time; the message says which and what it said."""


class SlurmCommands:
    """Runs them, one at a time.

    Args:
        settings: which Slurm.
    """

    def __init__(self, settings: SlurmSettings) -> None:
        self._folder = settings.commands
        self._within_s = settings.answer_within_s
        environment = {k: v for k, v in os.environ.items() if not k.startswith(_OURS)}
        # Unix seconds leave no doubt of the zone; the tasks of an array are told in full
        self._environment = environment | {"SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
        if settings.config is not None:
            self._environment["SLURM_CONF"] = settings.config
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, program: str, *words: str) -> str:
        """What the command printed.

        Raises:
            SlurmDownError: it is not there, failed, or did not end in time.
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
            raise SlurmDownError(f"{path} cannot be run: {error.strerror}") from error
        self._running = process
        try:
            if self._closed:  # the daemon was stopped a moment ago
                self.close()
            said, complained = process.communicate(timeout=self._within_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise SlurmDownError(f"{program} did not answer within {self._within_s:g} s") from None
        finally:
            self._running = None
        if process.returncode != 0:
            why = _one_line(complained) or f"it ended with {process.returncode}"
            raise SlurmDownError(f"{program}: {why}")
        return said.decode("utf-8", "replace")

    def rows(self, fields: Sequence[str], *words: str) -> list[str]:
        """The lines of ``squeue`` with these fields of its ``-O``, each behind a `SEPARATOR`.

        Raises:
            SlurmDownError: as `run`.
        """
        wanted = ",".join(f"{field}:{SEPARATOR}" for field in fields)
        shown = self.run("squeue", "--noconvert", *words, "-h", "-O", wanted)
        return shown.rstrip("\n").split("\n")

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
