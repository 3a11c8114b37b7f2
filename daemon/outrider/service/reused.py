"""What costs much to make is made seldom, and shown to all who ask meanwhile."""

import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import Final, Generic, TypeVar

T = TypeVar("T")

CHEAP_S: Final = 0.001
"""What costs less is made anew each time: nobody sees anything old on an ordinary site."""
FEW_ASK_S: Final = 0.02
"""The same of what few ask for, as scrapers of metrics, which want the newest."""
PAUSES: Final = 50.0
"""So many times as long as what it cost beyond that it is shown: it takes a fiftieth of the loop,
however many clients ask."""
LONGEST_S: Final = 2.0
"""But for no longer than until the page asks again."""
FEWEST_PAUSES: Final = 10.0
"""Unless a tenth of the loop would not be enough for it otherwise."""


class Reused(Generic[T]):
    """A value that is made when somebody asks, unless it was costly and is fresh.

    Args:
        cost_s: CPU-seconds of this thread: what others do meanwhile makes nothing older.
        clock: seconds that only grow.
        cheap_s: what costs less is made anew each time.
    """

    def __init__(
        self,
        cost_s: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
        cheap_s: float = CHEAP_S,
    ) -> None:
        self._cheap_s = cheap_s
        self._cost_s = cost_s
        self._clock = clock
        self._until_s = -inf
        self._held: list[T] = []

    def of(self, make: Callable[[], T]) -> T:
        """The value, made now or a moment ago. What `make` raises is kept by nobody."""
        for held in self._fresh():
            return held
        began_s = self._cost_s()
        return self._keep(make(), began_s)

    async def of_coroutine(self, make: Callable[[], Awaitable[T]]) -> T:
        """The same of a coroutine. Where it waits, the work of others counts as its cost."""
        for held in self._fresh():
            return held
        began_s = self._cost_s()
        return self._keep(await make(), began_s)

    def _fresh(self) -> list[T]:
        """The value that is still shown, if there is one; what is old is not kept in memory."""
        if self._held and self._clock() >= self._until_s:
            self._held = []
        return self._held

    def _keep(self, made: T, began_s: float) -> T:
        held_s = held_for_s(self._cost_s() - began_s, self._cheap_s)
        if held_s:
            self._until_s, self._held = self._clock() + held_s, [made]
        return made


def held_for_s(took_s: float, cheap_s: float = CHEAP_S) -> float:
    """For how long something is shown that took so many seconds to make.

    >>> held_for_s(0.0005), round(held_for_s(0.011), 3), held_for_s(0.101), round(held_for_s(1.001))
    (0.0, 0.5, 2.0, 10)
    """
    over_s = took_s - cheap_s
    if over_s <= 0:
        return 0.0
    return max(min(PAUSES * over_s, LONGEST_S), FEWEST_PAUSES * over_s)
