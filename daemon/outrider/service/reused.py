"""What costs much to make is made seldom, and shown to all who ask meanwhile."""

import time
from collections.abc import Callable
from typing import Final, Generic, TypeVar

T = TypeVar("T")

CHEAP_S: Final = 0.02
"""What costs less is made anew each time: nobody sees anything old on an ordinary site."""
PAUSES: Final = 10.0
"""So many times as long as making it took it is shown: so it takes a tenth of the loop at most,
however many clients ask."""


class Reused(Generic[T]):
    """A value that is made when somebody asks, unless it was costly and is fresh.

    Args:
        cost_s: CPU-seconds of this thread: what others do meanwhile makes nothing older.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        cost_s: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cost_s = cost_s
        self._clock = clock
        self._fresh: tuple[float, T] | None = None

    def of(self, make: Callable[[], T]) -> T:
        """The value, made now or a moment ago. What `make` raises is kept by nobody."""
        if self._fresh is not None and self._clock() < self._fresh[0]:
            return self._fresh[1]
        self._fresh = None
        began_s = self._cost_s()
        made = make()
        took_s = self._cost_s() - began_s
        if took_s > CHEAP_S:
            self._fresh = self._clock() + PAUSES * took_s, made
        return made
