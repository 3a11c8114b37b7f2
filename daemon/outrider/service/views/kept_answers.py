"""Answers that take a thread to make: kept for a while, and of a kind at most one is being made."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from math import inf
from typing import Any, Final, TypeAlias

from outrider.service.host.own_thread import in_own_thread

PATIENCE_S: Final = 20.0
"""So long a client waits for it: a disk that hangs holds up no more."""
FRESH_S: Final = 15.0
PAUSES: Final = 10.0
"""An answer is shown for so many times as long as it took to make, and for `FRESH_S` at least; a
failure is told for the former alone."""

Make: TypeAlias = Callable[[], dict[str, Any]]
"""Makes the answer, in a thread of its own."""


class KeptAnswers:
    """Answers by their names.

    Args:
        name: of the threads.
        clock: seconds that only grow.
        most: so many answers are kept or being made; the oldest give way.
    """

    def __init__(
        self, name: str, clock: Callable[[], float] = time.monotonic, most: int = 16
    ) -> None:
        self._name = name
        self._clock = clock
        self._most = most
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}
        self._fresh_until_s: dict[str, float] = {}

    async def of(self, key: str, prepare: Callable[[], Awaitable[Make]]) -> dict[str, Any]:
        """The answer of this name: one that is kept, or a new one.

        Args:
            key: its name.
            prepare: gathers on the event loop what the new one is made from.

        Raises:
            TimeoutError: it takes longer than `PATIENCE_S`, and who asks later may get it; or too
                many others are being made.
            Exception: what making it raised.
        """
        if not self._holds(key):
            make = await prepare()
            if not self._holds(key):
                self._make_room(key)
                began_s = self._clock()
                asked = in_own_thread(make, self._name)
                self._asked[key] = asked
                self._fresh_until_s.pop(key, None)
                asked.add_done_callback(lambda done: self._keep(key, began_s, done))
        return await asyncio.wait_for(asyncio.shield(self._asked[key]), PATIENCE_S)

    def _holds(self, key: str) -> bool:
        asked = self._asked.get(key)
        if asked is None or asked.get_loop() is not asyncio.get_running_loop():
            return False
        return not asked.done() or self._clock() < self._fresh_until_s.get(key, inf)

    def _make_room(self, key: str) -> None:
        self._asked.pop(key, None)
        made = [one for one, asked in self._asked.items() if asked.done()]
        for oldest in made[: max(0, len(self._asked) + 1 - self._most)]:
            del self._asked[oldest], self._fresh_until_s[oldest]
        if len(self._asked) >= self._most:
            raise TimeoutError(f"{self._most} answers are being made already")

    def _keep(self, key: str, began_s: float, done: "asyncio.Future[dict[str, Any]]") -> None:
        now_s = self._clock()
        is_good = not done.cancelled() and done.exception() is None
        least_s = FRESH_S if is_good else 0.0
        self._fresh_until_s[key] = now_s + max(least_s, PAUSES * (now_s - began_s))
