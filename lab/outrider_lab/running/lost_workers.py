"""Local workers of dask that died and that dask does not start again."""

import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

_GONE_AFTER_S: Final = 30.0
_REPLACED_WITHIN_S: Final = 60.0


class LostWorkers:
    """Puts new workers in the place of those that have been gone for a while.

    A worker that dies is started again by its supervisor (dask's nanny), but for one that dies
    while that still waits to hear of its start: then nobody does, and the runs that are left would
    wait for ever. A run that kills its worker at once, again and again, comes to that.

    Args:
        cluster: a `distributed.LocalCluster`.
        workers: how many it is to have.
        gone_after_s: for how long one is not there before another takes its place; twice as long
            each time, for it may only be slow to start.
        clock: seconds.
    """

    def __init__(
        self,
        cluster: Any,
        workers: int,
        gone_after_s: float = _GONE_AFTER_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._cluster = cluster
        self._workers = workers
        self._gone_after_s = gone_after_s
        self._clock = clock
        self._missed_since_s: dict[Any, float] = {}

    def look(self) -> int:
        """Replace those that are due; how many were."""
        now_s = self._clock()
        there = {worker["name"] for worker in self._cluster.scheduler_info["workers"].values()}
        missed = [name for name in self._cluster.workers if name not in there]
        self._missed_since_s = {name: self._missed_since_s.get(name, now_s) for name in missed}
        gone = [
            name for name, since_s in self._missed_since_s.items()
            if now_s - since_s >= self._gone_after_s
        ]  # fmt: skip
        if gone:
            self._gone_after_s *= 2.0
            self._missed_since_s.clear()  # the new one may have the same name
            cluster = self._cluster
            # first without them: a new one under the name of an old one would change nothing
            with suppress(TimeoutError):  # it goes on; those that stay away come up again
                cluster.sync(cluster.scale_down, gone, callback_timeout=_REPLACED_WITHIN_S)
            cluster.scale(self._workers)
        return len(gone)
