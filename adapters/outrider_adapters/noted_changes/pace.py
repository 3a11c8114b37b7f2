"""Not more than so many changes in a second."""

import threading
import time
from collections.abc import Callable


class Pace:
    """Waits until so many more are allowed.

    Args:
        per_s: how many in a second.
        clock: seconds that only ever go on.
        wait: waits for so many seconds unless it is told to end, and says whether it was.
    """

    def __init__(
        self,
        per_s: float,
        clock: Callable[[], float] = time.monotonic,
        wait: Callable[[float], bool] | None = None,
    ) -> None:
        self._per_s = per_s
        self._clock = clock
        self._ended = threading.Event()
        self._wait = wait or self._ended.wait
        self._next_s = 0.0

    @property
    def at_once(self) -> int:
        """How many to ask for together: short bursts, and pauses between them."""
        return max(1, int(self._per_s / 2))

    def waited_and_ended(self, n: int) -> bool:
        """Wait until so many more may be asked for; whether it is to end instead."""
        now_s = self._clock()
        pause_s = self._next_s - now_s
        if pause_s > 0.0 and self._wait(pause_s):
            return True
        self._next_s = max(self._next_s, now_s) + n / self._per_s
        return False

    def hurry(self) -> None:
        """Wait no more. From any thread."""
        self._ended.set()
