"""External observations of a daemon: answers, latency and memory."""

import http.client
import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import urlsplit

EVERY_S: Final = 0.25
GIVES_UP_S: Final = 30.0
_LAG: Final = re.compile(rb"^outrider_loop_lag_seconds ([0-9.e+-]+)$", re.MULTILINE)


class Sample(NamedTuple):
    """One look at the daemon.

    Attributes:
        at_s: seconds since the probe began.
        during: the attack that went on.
        answer_s: how long ``/healthz`` took; infinity where it did not answer.
        memory_mb: resident memory.
    """

    at_s: float
    during: str
    answer_s: float
    memory_mb: float


class Probe:
    """Context manager that polls a daemon a few times a second in its own thread.

    Args:
        url: of the daemon now; empty while there is none.
        pid: of the daemon now; None while there is none.

    Attributes:
        during: what goes on now; the samples name it.
        samples: in order of time.
    """

    def __init__(self, url: Callable[[], str], pid: Callable[[], int | None]) -> None:
        self._url, self._pid = url, pid
        self.during = ""
        self.samples: list[Sample] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._look, name="probe", daemon=True)

    def __enter__(self) -> Self:
        self._began_s = time.monotonic()
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:  # fmt: skip
        self._over.set()
        self._thread.join(2 * GIVES_UP_S)

    def _look(self) -> None:
        while not self._over.wait(EVERY_S):
            url, pid, during = self._url(), self._pid(), self.during
            if not url or pid is None:
                continue
            at_s = time.monotonic() - self._began_s
            answer_s = answer_time_s(url)
            if self._pid() == pid and (mb := memory_mb(pid)) is not None:  # it was not killed
                self.samples.append(Sample(at_s, during, answer_s, mb))


def answer_time_s(url: str) -> float:
    """Return the seconds of ``/healthz`` with its connection; infinity if it does not answer."""
    began_s = time.monotonic()
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=GIVES_UP_S)
    try:
        connection.request("GET", "/healthz")
        well = connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        well = False
    finally:
        connection.close()
    return time.monotonic() - began_s if well else float("inf")


def memory_mb(pid: int) -> float | None:
    """Resident memory of a process in MB; None if it is no more."""
    try:
        status = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return None
    found = re.search(r"^VmRSS:\s+(\d+) kB$", status, re.MULTILINE)
    return None if found is None else int(found[1]) / 1_000


def loop_lag_s(exposition: str) -> float:
    """Return the longest event loop delay since the last scrape, from the metrics."""
    found = _LAG.search(exposition.encode())
    assert found is not None, "no metric tells the loop's lag"
    return float(found[1])
