"""Live queries to the batch systems: why does this job wait?"""

import asyncio
import time
from collections import defaultdict
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

import msgspec
import structlog

from outrider.api.adapter import Adapter, WaitingReason
from outrider.model.errors import PeerError
from outrider.model.printable import printable_line
from outrider.service.host.logs import RateLimit

PATIENCE_S: Final = 3.0
"""Seconds to wait for an answer; an explanation without one follows."""
KEPT_S: Final = 2.0
"""Cache lifetime of an answer in seconds, which limits queries to the batch system."""
_MOST_KEPT: Final = 256
_MOST_CLAUSES: Final = 100
_MOST_REMEDIES: Final = 10
_LONGEST: Final = 1_000
"""Maximum characters of a text; some contain what users write, such as requirements."""

log = structlog.get_logger()


class SystemAnswer(NamedTuple):
    """Answer of the batch systems about a job.

    Attributes:
        adapter: label of the adapter that knows the job; empty: none does.
        reason: why it is not running; None: no answer.
        unanswered: adapters that failed to answer and why, a sentence each.
    """

    adapter: str = ""
    reason: WaitingReason | None = None
    unanswered: tuple[str, ...] = ()


NO_ANSWER: Final = SystemAnswer()


class WaitingReasons:
    """Client of the adapters' live queries: one at a time for each, with a short cache.

    Args:
        adapters: those in force now, by label.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        adapters: Callable[[], Mapping[str, Adapter]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._adapters = adapters
        self._clock = clock
        self._turns: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._kept: dict[tuple[str, str], tuple[float, WaitingReason | None]] = {}
        self._limit = RateLimit(clock)

    async def of(self, job: str, sees_names: bool = True) -> SystemAnswer:
        """Return the answer of the first adapter that knows the job.

        Args:
            job: its name.
            sees_names: whether the client may see users' names; if not, adapters whose reasons may
                name users are not queried.
        """
        adapters = {
            label: adapter
            for label, adapter in self._adapters().items()
            if sees_names or not adapter.reasons_name_users
        }
        answers = await asyncio.gather(*(self._ask(*one, job) for one in adapters.items()))
        unanswered = tuple(answer for answer in answers if isinstance(answer, str))
        for label, answer in zip(adapters, answers, strict=True):
            if isinstance(answer, WaitingReason):
                return SystemAnswer(label, answer, unanswered)
        return SystemAnswer(unanswered=unanswered)

    async def _ask(self, label: str, adapter: Adapter, job: str) -> WaitingReason | str | None:
        """Return the adapter's answer; a text says why there is none."""
        try:
            async with asyncio.timeout(PATIENCE_S), self._turns[label]:
                return await self._answer(label, adapter, job)
        except TimeoutError:
            return f"{label} did not answer within {PATIENCE_S:g} s"
        except PeerError as error:
            return f"{label}: {_short(str(error))}"
        except Exception as error:  # noqa: BLE001 - an adapter is a plugin; its failure is reported
            why = f"{label} failed: {type(error).__name__}: {_short(str(error))}"
            self._log_fault(label, why, error)
            return why

    async def _answer(self, label: str, adapter: Adapter, job: str) -> WaitingReason | None:
        kept = self._kept.get((label, job))
        if kept is not None and self._clock() - kept[0] < KEPT_S:
            return kept[1]
        answer = await adapter.waiting_reason(job)
        checked = None if answer is None else _checked(answer)
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[label, job] = self._clock(), checked
        return checked

    def _log_fault(self, label: str, why: str, error: Exception) -> None:
        if self._limit.allows(label):
            log.error("waiting_reason_failed", adapter=label, error=why, exc_info=error)


def _checked(answer: WaitingReason) -> WaitingReason:
    """Return an answer in its declared shape and of bounded size.

    Raises:
        msgspec.ValidationError: a plugin gave something else.
    """
    reason = msgspec.convert(msgspec.to_builtins(answer), WaitingReason)
    clauses = (
        msgspec.structs.replace(clause, text=_short(clause.text))
        for clause in reason.clauses[:_MOST_CLAUSES]
    )
    return msgspec.structs.replace(
        reason,
        code=_short(reason.code),
        sentence=_short(reason.sentence),
        remedies=tuple(map(_short, reason.remedies[:_MOST_REMEDIES])),
        removes_most=None if reason.removes_most is None else _short(reason.removes_most),
        clauses=tuple(clauses),
    )


def _short(text: str) -> str:
    """Return a text in one bounded line; users write some of it, such as requirements."""
    return printable_line(text, _LONGEST)
