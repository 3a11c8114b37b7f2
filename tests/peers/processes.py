"""Helpers for peers that are processes: end them, and wait for what they do."""

import subprocess
import time
from collections.abc import Callable
from typing import Final

ENDED_WITHIN_S = 10.0
_LOOKING_RATIO: Final = 0.1
_LONGEST_PAUSE_S: Final = 1.0


def end(*processes: "subprocess.Popen[bytes]") -> None:
    """Terminate these processes and no other; kill those that do not end."""
    for process in reversed(processes):
        process.terminate()
    for process in processes:
        try:
            process.wait(ENDED_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def comes_true(holds: Callable[[], bool], within_s: float, every_s: float) -> bool:
    """Wait until a condition holds; return whether it did in time.

    Args:
        holds: the condition.
        within_s: how long to wait.
        every_s: seconds from one look to the next; more where looking itself takes long (a
            command of the batch system), so that it takes a tenth of the time, but no more than
            a second: jobs of some seconds are waited for.
    """
    deadline_s = time.monotonic() + within_s
    while True:
        began_s = time.monotonic()
        if holds():
            return True
        looked_s = time.monotonic()
        if looked_s > deadline_s:
            return False
        rest_s = (looked_s - began_s) * (1.0 / _LOOKING_RATIO - 1.0)
        time.sleep(max(every_s, min(rest_s, _LONGEST_PAUSE_S)))
