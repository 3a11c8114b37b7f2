"""Separate process that watches a real pool, or acts on it.

HTCondor's bindings keep Python's global lock while they wait for an answer, up to a minute. In this
process no other thread would run during that time, and no page, probe or stop would be answered. So
they are called in another process, which can be killed at any moment: it only queries.
"""

import pickle
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any, Final

from outrider.api import PeerError
from outrider_adapters.htcondor.settings import HTCondorSettings

BEGIN: Final = "begin"
LOOK: Final = "look"
WHY: Final = "why"
LEASE: Final = "lease"
RELEASE: Final = "release"
RELEASE_ALL: Final = "release all"
PROVE: Final = "prove"
DIAGNOSE: Final = "diagnose"
ATTRIBUTES: Final = "attributes"
HOSTS_AND_LOGS: Final = "hosts and logs"
SAME_CURSOR: Final = "as before"
"""Placeholder for a cursor that was sent before: a cursor may name thousands of machines."""
PATIENCE_S: Final = 10.0
"""Seconds for the start of the process, name resolution and all daemons that do answer."""
CONNECT_S: Final = 10.0
"""Shortest time that the bindings wait for a connection, whatever the timeout of a call."""
_CHILD: Final = "outrider_adapters.htcondor.pool_child"
_FAILURES: Final[dict[str, type[Exception]]] = {"PeerError": PeerError, "ValueError": ValueError}


class PoolProcess:
    """Parent's end: sends a question and waits for the answer, without the global lock.

    Args:
        settings: settings of the adapter.
    """

    def __init__(self, settings: HTCondorSettings) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - a module of ours
                [sys.executable, "-m", _CHILD, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[theirs.fileno()],
                process_group=0,  # an interrupt at the terminal is for the daemon, which ends it
            )
        self._connection = Connection(ours.detach())
        self._send(settings)

    def ask(self, question: str, argument: Any = None, within_s: float | None = None) -> Any:
        """Return the answer to a question; wait at most `within_s` seconds (None: no limit).

        Raises:
            PeerError, ValueError: raised in the process.
            TimeoutError: there is no answer in time; there may be one later.
            RuntimeError: the process failed in another way, or has ended.
        """
        self._send((question, argument))
        try:
            is_in_time = self._connection.poll(within_s)
            answer, failure = self._connection.recv() if is_in_time else (None, None)
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            code = self._process.poll()
            raise RuntimeError(f"the process that queries the pool ended with {code}") from error
        if not is_in_time:
            raise TimeoutError(f"no answer within {within_s:g} s")
        if failure is not None:
            raise _raised(*failure)
        return answer

    def kill(self) -> None:
        """End the process, from any thread; a question that waits for its answer fails."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and close the connection; no thread may be waiting for an answer."""
        self.kill()
        self._connection.close()

    def _send(self, what: Any) -> None:
        try:
            self._connection.send(what)
        except OSError as error:
            raise RuntimeError(f"the process that queries the pool is gone: {error}") from error


def asked_once(settings: HTCondorSettings, question: str, within_s: float | None = None) -> Any:
    """Return one answer from a process that ends afterwards, for an interactive command.

    `answer_within_s` bounds a daemon's silence, but not how long the bindings resolve a name,
    which they do repeatedly. So the whole answer has a bound, too.

    Args:
        settings: settings of the adapter.
        question: a question that needs no argument.
        within_s: the bound in seconds; None: `PATIENCE_S` longer than the bindings wait.

    Raises:
        PeerError: the pool does not answer, or not within some seconds.
        RuntimeError: the process failed otherwise.
    """
    if within_s is None:
        within_s = max(settings.answer_within_s, CONNECT_S) + PATIENCE_S
    process = PoolProcess(settings)
    try:
        return process.ask(question, within_s=within_s)
    except TimeoutError as error:
        asked = f"the collector {settings.collector or 'of CONDOR_CONFIG (COLLECTOR_HOST)'}"
        raise PeerError(
            f"no answer within {within_s:g} s from {asked} or an access point that it names: check "
            "that the name resolves (getent hosts NAME) and that no firewall blocks this host"
        ) from error
    finally:
        process.close()


def _raised(kind: str, why: str, trace: str) -> Exception:
    """Return the child's error; one that is an internal error keeps its traceback."""
    if kind in _FAILURES:
        return _FAILURES[kind](why)
    fault = RuntimeError(f"{kind}: {why}")
    fault.add_note(trace)
    return fault
