"""Revert the changes of any Outrider daemon in a batch system, lever by lever."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct

from outrider.api.lever import Lever
from outrider.model.errors import PeerError
from outrider.service.host.threads import in_own_thread


class Reverted(Struct, frozen=True):
    """The result of reverting one lever's changes."""

    lever: str
    jobs: Annotated[int | None, Meta(description="Number of jobs; null: unknown.")]
    problem: Annotated[str, Meta(description="Cause of a failure, or empty. Changes then expire.")]

    @property
    def sentence(self) -> str:
        """The result in words."""
        if self.problem:
            return f"{self.lever}: not reverted: {self.problem}"
        return f"{self.lever}: reverted for {self.jobs:,} jobs"


def revert_lever(lever: Lever, *, stale: bool = False) -> int:
    """Revert all changes of a lever, also of earlier daemons; return the number of jobs.

    The lever is closed. Its exceptions are passed on.

    Args:
        lever: a lever created for this.
        stale: True: only permanent changes that were not renewed in time.
    """
    try:
        return lever.withdraw_stale() if stale else lever.withdraw_all()
    finally:
        lever.close()


def revert_each(levers: Mapping[str, Lever], *, stale: bool = False) -> list[Reverted]:
    """Revert the changes of levers one after another; one that fails does not stop the others.

    Args:
        levers: by name, each created for this.
        stale: as in `revert_lever`.

    Raises:
        PeerError: nothing was reverted, because no batch system did it.
    """
    found, unreached = [], []
    for name, lever in levers.items():
        try:
            found.append(Reverted(name, revert_lever(lever, stale=stale), ""))
        except PeerError as error:
            unreached.append(error)
            found.append(Reverted(name, None, str(error)))
        except Exception as error:  # noqa: BLE001 - a plugin's code
            found.append(Reverted(name, None, f"{type(error).__name__}: {error}"))
    if unreached and len(unreached) == len(found):
        raise PeerError("; ".join(map(str, unreached)))
    return found


class LeverReverter:
    """Revert the changes of several levers concurrently; a hanging one is not called again.

    Args:
        within_s: seconds to wait for them.
    """

    def __init__(self, within_s: float) -> None:
        self._within_s = within_s
        self._hanging: dict[str, asyncio.Future[int]] = {}

    async def take(self, levers: Mapping[str, Sequence[Lever]]) -> list[Reverted]:
        """Revert the changes of the levers of each adapter.

        One that raises or hangs is reported, and the others continue.
        """
        calls: dict[str, asyncio.Future[int]] = {}
        found = []
        for name, lever in ((f"{lb}: {one.name}", one) for lb, of in levers.items() for one in of):
            if (before := self._hanging.get(name)) is not None and not before.done():
                found.append(Reverted(name, None, "an earlier call still hangs"))
            else:
                calls[name] = in_own_thread(partial(revert_lever, lever), f"take-{lever.name}")
        if calls:
            await asyncio.wait(calls.values(), timeout=self._within_s)
        for name, call in calls.items():
            if not call.done():
                self._hanging[name] = call
                found.append(Reverted(name, None, f"no answer within {self._within_s:g} s"))
            elif (error := call.exception()) is not None:
                found.append(Reverted(name, None, f"{type(error).__name__}: {error}"))
            else:
                found.append(Reverted(name, call.result(), ""))
        return found
