"""Run commands of a batch system one at a time, with a timeout."""

import contextlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from outrider.api import Batch, FoundSystem, PeerError
from outrider.model.printable import one_line

_MAX_ERROR_CHARS: Final = 300


class CommandError(PeerError):
    """Raised if a command failed or timed out; the message contains its name and error text."""


class Commands:
    """Runner of commands, one at a time.

    Args:
        folder: folder of the commands; None: found by PATH.
        environment: environment variables of the commands.
        within_s: timeout of a command, in seconds.
    """

    def __init__(self, folder: str | None, environment: Mapping[str, str], within_s: float) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._within_s = within_s
        self._running: subprocess.Popen[bytes] | None = None
        self._closed = False

    def run(self, program: str, *words: str, may_fail: bool = False) -> str:
        """Run a command and return its output.

        Args:
            program: name of the command.
            words: its arguments.
            may_fail: return the output even if the exit status is an error.

        Raises:
            CommandError: it does not exist, failed, or did not end in time.
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
            output, errors = process.communicate(timeout=self._within_s)
        except subprocess.TimeoutExpired:
            _kill(process)
            process.communicate()
            raise CommandError(f"{program} did not answer within {self._within_s:g} s") from None
        finally:
            self._running = None
        if process.returncode != 0 and not may_fail:
            why = (
                one_line(errors.decode("utf-8", "replace"), _MAX_ERROR_CHARS)
                or f"it ended with {process.returncode}"
            )
            raise CommandError(f"{program}: {why}")
        return output.decode("utf-8", "replace")

    def close(self) -> None:
        """End the running command and every later one, from any thread."""
        self._closed = True
        if (process := self._running) is not None:
            _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):  # it has just ended
        os.killpg(process.pid, signal.SIGKILL)


# -- asking ----------------------------------------------------------------------------------------
# Queries to daemons of a batch system, and the daemons that do not answer.

T = TypeVar("T")


class _Silence(NamedTuple):
    since_s: float
    why: str


class Asking:
    """Maker of queries, which records when each daemon that does not answer last did.

    Args:
        failure: exception of a call without an answer.
    """

    def __init__(self, failure: type[Exception]) -> None:
        self._failure = failure
        self._away: dict[str, _Silence] = {}
        self._answered_s: dict[str, float] = {}

    def ask(self, whom: str, now_s: float, question: Callable[[], T]) -> T | None:
        """Return the answer, or None if there is none."""
        try:
            answer = question()
        except self._failure as error:
            since_s = self._answered_s.setdefault(whom, now_s)
            self._away[whom] = _Silence(since_s, str(error))
            return None
        self._away.pop(whom, None)
        self._answered_s[whom] = now_s
        return answer

    def batch(
        self, whom: str, now_s: float, look: Callable[[], Batch], cursor: dict[str, Any] | None
    ) -> Batch:
        """Return the batch of a look or, without an answer, an empty one with note and age.

        Args:
            whom: the daemon that is queried.
            now_s: Unix seconds.
            look: queries it.
            cursor: cursor of the last batch.
        """
        began_s = time.monotonic()
        found = self.ask(whom, now_s, look)
        if found is not None:
            return found
        age_s = now_s - self.away_since_s(now_s) + time.monotonic() - began_s
        return Batch(events=[], cursor=cursor, age_s=age_s, note="; ".join(self.notes()))

    def is_away(self, whom: str) -> bool:
        """Return whether the last query to a daemon was not answered."""
        return whom in self._away

    def away_since_s(self, now_s: float) -> float:
        """Return the oldest last answer of a daemon that does not answer; `now_s` if all do."""
        return min((one.since_s for one in self._away.values()), default=now_s)

    def notes(self) -> list[str]:
        """Return the daemons that do not answer and why, a sentence each."""
        return [f"the {whom} does not answer: {one.why}" for whom, one in self._away.items()]


# -- found commands --------------------------------------------------------------------------------
# Find a batch system's commands on this host, if a service would find them.

_OF_SERVICES: Final = (
    "/usr/local/sbin",
    "/usr/local/bin",
    "/usr/sbin",
    "/usr/bin",
    "/sbin",
    "/bin",
)
"""PATH of a service of systemd, which reads no profile."""
_WITHIN_S: Final = 10.0
HTCONDOR: Final = "HTCondor"
_ASKED: Final = "condor_config_val"


def found_by_commands(system: str, command: str, signs: tuple[str, ...]) -> FoundSystem | None:
    """Return a batch system whose command is on PATH and that has a configuration file.

    No command is run: those of a system that is only installed may hang for a minute.

    Args:
        system: display name of the batch system.
        command: a command that its adapter needs.
        signs: paths of its configuration; empty ones are skipped.
    """
    path = shutil.which(command)
    sign = next((sign for sign in signs if sign and Path(sign).is_file()), None)
    if path is None or sign is None:
        return None
    folder = str(Path(path).parent)
    settings: dict[str, Any] = {} if folder in _OF_SERVICES else {"commands": folder}
    return FoundSystem(system=system, sign=sign, settings=settings)


def condor_value(name: str) -> str:
    """Return a value of this host's HTCondor configuration; empty if there is none."""
    if shutil.which(_ASKED) is None:
        return ""
    try:
        output = Commands(None, os.environ, _WITHIN_S).run(_ASKED, name)
    except PeerError:
        return ""
    return output.strip()


def found_pool() -> FoundSystem | None:
    """Return the HTCondor pool that this host is configured for."""
    collector = condor_value("COLLECTOR_HOST")
    if not collector:
        return None
    return FoundSystem(system=HTCONDOR, sign=f"{_ASKED} COLLECTOR_HOST: {collector}")


def found_event_log() -> FoundSystem | None:
    """Return the event log of an access point on this host, if there is no library."""
    log = condor_value("EVENT_LOG")
    if not log or not Path(log).is_file():
        return None
    missing = (
        "HTCondor's Python library is not installed, so only its event log is followed: machines "
        "are inferred, and why a job waits is unknown. pip install 'outrider[htcondor]', then "
        "[adapters.htcondor] in place of the log"
    )
    settings = {"paths": [log]}
    return FoundSystem(
        system=HTCONDOR, sign=f"{_ASKED} EVENT_LOG: {log}", settings=settings, review=(missing,)
    )
