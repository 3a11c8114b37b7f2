"""A process of its own that watches a real pool.

HTCondor's bindings keep Python's global lock while they wait for an answer, up to a minute: beside
them no thread of this process would run, and no page, probe or stop be answered. So they are called
in another process, which can be killed at any moment: it only asks.
"""

import pickle
import socket
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Final

import msgspec

from outrider.api import Batch, OutriderError, PeerError, WaitingReason
from outrider_adapters.htcondor.real_pool_settings import HTCondorSettings

BEGIN: Final = "begin"
LOOK: Final = "look"
WHY: Final = "why"
SAME_CURSOR: Final = "as before"
"""In the place of a cursor that was sent before: it may name thousands of machines."""
_FAILURES: Final[dict[str, type[Exception]]] = {"PeerError": PeerError, "ValueError": ValueError}


class PoolProcess:
    """The parent's end: asks a question and waits for the answer, without the global lock.

    Args:
        settings: of the adapter.
    """

    def __init__(self, settings: HTCondorSettings) -> None:
        ours, theirs = socket.socketpair()
        with theirs:
            self._process = subprocess.Popen(  # noqa: S603 - this very module
                [sys.executable, "-m", __name__, str(theirs.fileno())],
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


def main() -> None:
    """The child's end: watch the pool, and answer until the parent hangs up."""
    from outrider_adapters.htcondor.locating import answer_within, event_logs_of, located
    from outrider_adapters.htcondor.pool_calls import PoolCalls
    from outrider_adapters.htcondor.pool_watch import PoolWatch
    from outrider_adapters.htcondor.questions import ask_why

    connection = Connection(int(sys.argv[1]))
    settings: HTCondorSettings = connection.recv()
    answer_within(settings.answer_within_s)
    watch: PoolWatch | None = None
    calls: PoolCalls | None = None

    def begin(cursor: Any) -> None:
        nonlocal watch, calls
        calls, ads = located(settings.collector, settings.access_points)
        logs = event_logs_of(ads, settings)
        watch = PoolWatch(calls, logs, settings, time.time, settings.start_at == "now")
        watch.start(cursor)

    sent: Any = None

    def look(_: Any) -> Batch:
        nonlocal sent
        if watch is None:
            raise RuntimeError("a look before the beginning")
        batch = watch.look()
        if batch.cursor is sent:
            return msgspec.structs.replace(batch, cursor=SAME_CURSOR)
        sent = batch.cursor
        return batch

    def why(job: str) -> WaitingReason | None:
        if watch is None or calls is None:
            raise PeerError("the pool has not been found yet")
        return ask_why(watch, calls, job)

    answers: dict[str, Callable[[Any], Any]] = {BEGIN: begin, LOOK: look, WHY: why}
    while True:
        try:
            question, argument = connection.recv()
        except (EOFError, OSError):
            return
        answer, failure = None, None
        try:
            answer = answers[question](argument)
        except Exception as error:  # noqa: BLE001 - told to the parent, which raises it
            expected = isinstance(error, OutriderError)
            kind = PeerError.__name__ if expected else type(error).__name__
            failure = (kind, str(error), traceback.format_exc())
        try:
            connection.send((answer, failure))
        except OSError:
            return


if __name__ == "__main__":
    main()
