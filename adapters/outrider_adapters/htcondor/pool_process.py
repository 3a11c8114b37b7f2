"""A process of its own that watches a real pool, or acts on it.

HTCondor's bindings keep Python's global lock while they wait for an answer, up to a minute: beside
them no thread of this process would run, and no page, probe or stop be answered. So they are called
in another process, which can be killed at any moment: it only asks.
"""

import pickle
import socket
import subprocess
import sys
from multiprocessing.connection import Connection
from typing import Any, Final

from outrider.api import PeerError
from outrider_adapters.htcondor.real_pool_settings import HTCondorSettings

BEGIN: Final = "begin"
LOOK: Final = "look"
WHY: Final = "why"
LEASE: Final = "lease"
RELEASE: Final = "release"
RELEASE_ALL: Final = "release all"
PROVE: Final = "prove"
SAME_CURSOR: Final = "as before"
"""In the place of a cursor that was sent before: it may name thousands of machines."""
_CHILD: Final = "outrider_adapters.htcondor.pool_child"
_FAILURES: Final[dict[str, type[Exception]]] = {"PeerError": PeerError, "ValueError": ValueError}


class PoolProcess:
    """The parent's end: asks a question and waits for the answer, without the global lock.

    Args:
        settings: of the adapter.
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

    def ask(self, question: str, argument: Any = None) -> Any:
        """The answer to a question.

        Raises:
            PeerError, ValueError: as the process says.
            RuntimeError: it failed otherwise, or has ended.
        """
        self._send((question, argument))
        try:
            answer, failure = self._connection.recv()
        except (EOFError, OSError, pickle.UnpicklingError) as error:
            code = self._process.poll()
            raise RuntimeError(f"the process that asks the pool ended with {code}") from error
        if failure is not None:
            raise _raised(*failure)
        return answer

    def kill(self) -> None:
        """End the process; a question that waits for its answer fails. From any thread."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        """End the process and hang up; nobody may be waiting for an answer."""
        self.kill()
        self._connection.close()

    def _send(self, what: Any) -> None:
        try:
            self._connection.send(what)
        except OSError as error:
            raise RuntimeError(f"the process that asks the pool is gone: {error}") from error


def _raised(kind: str, why: str, trace: str) -> Exception:
    """The child's error: of the pool or the configuration as it is, a fault with its traceback."""
    if kind in _FAILURES:
        return _FAILURES[kind](why)
    fault = RuntimeError(f"{kind}: {why}")
    fault.add_note(trace)
    return fault
