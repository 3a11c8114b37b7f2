"""One answer for all who ask the same at about the same time: made, encoded, compressed once."""

import gzip
import time
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Hashable
from typing import Final

from outrider.service.reused import Reused

MOST: Final = 16
"""So many questions are remembered at most."""
_LEVEL: Final = 6


class SharedAnswer:
    """The body of an answer.

    Args:
        body: as it is sent to clients that take it as it is.
    """

    def __init__(self, body: bytes) -> None:
        self.body = body
        self._packed: bytes | None = None

    def packed(self) -> bytes:
        """The same, compressed by gzip when it is first asked for."""
        if self._packed is None:
            self._packed = gzip.compress(self.body, _LEVEL, mtime=0)
        return self._packed


class SharedAnswers:
    """Answers by what was asked, as long as `Reused` holds them.

    Args:
        cost_s: CPU-seconds of this thread.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        cost_s: Callable[[], float] = time.thread_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cost_s = cost_s
        self._clock = clock
        self._by_question: OrderedDict[Hashable, Reused[SharedAnswer]] = OrderedDict()

    async def of(self, question: Hashable, make: Callable[[], Awaitable[bytes]]) -> SharedAnswer:
        """The answer, made now or a moment ago. What `make` raises is kept by nobody."""
        reused = self._by_question.get(question)
        if reused is None:
            reused = self._by_question[question] = Reused(self._cost_s, self._clock)
            if len(self._by_question) > MOST:
                self._by_question.popitem(last=False)
        self._by_question.move_to_end(question)

        async def answer() -> SharedAnswer:
            return SharedAnswer(await make())

        return await reused.of_coroutine(answer)

    def forget(self) -> None:
        """Something was changed by hand: who asks next sees it."""
        self._by_question.clear()
