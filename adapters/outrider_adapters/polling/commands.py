"""Commands of a batch system, run one at a time, and ended when they are silent for too long."""

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from outrider.api import Batch, FoundSystem, PeerError

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


# -- asking ----------------------------------------------------------------------------------------
# Questions to daemons of a batch system, and who does not answer them.

T = TypeVar("T")


class _Silence(NamedTuple):
    since_s: float
    why: str


class Asking:
    """Asks, and remembers since when somebody has not answered.

    Args:
        failure: what a call raises when nobody answers.
    """

    def __init__(self, failure: type[Exception]) -> None:
        self._failure = failure
        self._away: dict[str, _Silence] = {}

    def ask(self, whom: str, now_s: float, question: Callable[[], T]) -> T | None:
        """The answer, or None if nobody gives it."""
        try:
            answer = question()
        except self._failure as error:
            since_s = self._away[whom].since_s if whom in self._away else now_s
            self._away[whom] = _Silence(since_s, str(error))
            return None
        self._away.pop(whom, None)
        return answer

    def batch(
        self, whom: str, now_s: float, look: Callable[[], Batch], cursor: dict[str, Any] | None
    ) -> Batch:
        """Return what a look finds, or an empty batch that says why there is none, and grows old.

        Args:
            whom: the daemon that is asked.
            now_s: Unix seconds.
            look: asks it.
            cursor: of the last batch.
        """
        found = self.ask(whom, now_s, look)
        if found is not None:
            return found
        age_s = now_s - self.away_since_s(now_s)
        return Batch(events=[], cursor=cursor, age_s=age_s, note="; ".join(self.notes()))

    def is_away(self, whom: str) -> bool:
        """Return whether the last question to it was not answered."""
        return whom in self._away

    def away_since_s(self, now_s: float) -> float:
        """Since when the one that has been silent for longest has; `now_s` if nobody is."""
        return min((one.since_s for one in self._away.values()), default=now_s)

    def notes(self) -> list[str]:
        """Who does not answer and why, a sentence each."""
        return [f"the {whom} does not answer: {one.why}" for whom, one in self._away.items()]


# -- found commands --------------------------------------------------------------------------------
# Looking for a batch system's commands on this host, as far as a service would find them.

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
    """A batch system whose command is on PATH, and of whose configuration a file is there.

    Nobody is asked: commands of a system that is only installed may hang for a minute.

    Args:
        system: what people call it.
        command: one that its adapter needs.
        signs: paths of its configuration; empty ones are passed over.
    """
    path = shutil.which(command)
    sign = next((sign for sign in signs if sign and Path(sign).is_file()), None)
    if path is None or sign is None:
        return None
    folder = str(Path(path).parent)
    settings: dict[str, Any] = {} if folder in _OF_SERVICES else {"commands": folder}
    return FoundSystem(system=system, sign=sign, settings=settings)


def condor_value(name: str) -> str:
    """A value of HTCondor's configuration on this host; empty: it has none, or is not here."""
    if shutil.which(_ASKED) is None:
        return ""
    try:
        said = Commands(None, os.environ, _WITHIN_S).run(_ASKED, name)
    except PeerError:
        return ""
    return said.strip()


def found_pool() -> FoundSystem | None:
    """The HTCondor pool that this host is configured for."""
    collector = condor_value("COLLECTOR_HOST")
    if not collector:
        return None
    return FoundSystem(system=HTCONDOR, sign=f"{_ASKED} COLLECTOR_HOST: {collector}")


def found_event_log() -> FoundSystem | None:
    """The event log of an access point here, for where the pool itself cannot be asked."""
    log = condor_value("EVENT_LOG")
    if not log or not Path(log).is_file():
        return None
    missing = (
        "HTCondor's Python library is not installed, so only its event log is followed: machines "
        "are inferred, and why a job waits is not known. pip install 'outrider[htcondor]', then "
        "[adapters.htcondor] in place of the log"
    )
    settings = {"paths": [log]}
    return FoundSystem(
        system=HTCONDOR, sign=f"{_ASKED} EVENT_LOG: {log}", settings=settings, review=(missing,)
    )
