"""Taking back whatever any Outrider has changed in a batch system, lever by lever."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from outrider.api.lever import Lever
from outrider.service.host.own_thread import in_own_thread


class TakenBack(Struct, frozen=True):
    """What one lever took back."""

    lever: str
    jobs: Annotated[int | None, Meta(description="For how many jobs; null: not known.")]
    problem: Annotated[str, Meta(description="Why it did not; what it changed lapses. Or empty.")]

    @property
    def sentence(self) -> str:
        """The same in words."""
        if self.problem:
            return f"{self.lever}: not taken back: {self.problem}"
        return f"{self.lever}: taken back for {self.jobs:,} jobs"


def take_back(lever: Lever, *, stale: bool = False) -> int:
    """Take back whatever a lever, or one of an earlier daemon, has changed; for how many jobs.

    The lever is closed. Whatever it raises is raised.

    Args:
        lever: made for this.
        stale: only what lasts and was not renewed in time.
    """
    try:
        return lever.withdraw_stale() if stale else lever.withdraw_all()
    finally:
        lever.close()


class TakingBack:
    """The same in a daemon, by several levers at once; one that hangs is not asked a second time.

    Args:
        within_s: how long to wait for them.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._hanging: dict[str, asyncio.Future[int]] = {}

    async def take(self, levers: Mapping[str, Sequence[Lever]]) -> list[TakenBack]:
        """Take back by the levers of each adapter.

        One that raises or hangs says so, and the others go on.
        """
        calls: dict[str, asyncio.Future[int]] = {}
        found = []
        for name, lever in ((f"{lb}: {one.name}", one) for lb, of in levers.items() for one in of):
            if (before := self._hanging.get(name)) is not None and not before.done():
                found.append(TakenBack(name, None, "it was asked before, and still hangs"))
            else:
                calls[name] = in_own_thread(partial(take_back, lever), f"take-{lever.name}")
        if calls:
            await asyncio.wait(calls.values(), timeout=self._within_s)
        for name, call in calls.items():
            if not call.done():
                self._hanging[name] = call
                found.append(TakenBack(name, None, f"no answer within {self._within_s:g} s"))
            elif (error := call.exception()) is not None:
                found.append(TakenBack(name, None, f"{type(error).__name__}: {error}"))
            else:
                found.append(TakenBack(name, call.result(), ""))
        return found
