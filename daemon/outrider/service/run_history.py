"""What became of the CPUs: read from the journal in a thread, for all who ask alike."""

import asyncio
import time
from pathlib import Path
from typing import Any, Final

from outrider.ledger import Journal
from outrider.model.jobs import RUNNING, SUSPENDED_STATE
from outrider.service.core import Core
from outrider.service.own_thread import in_own_thread
from outrider.service.views.use_over_time import WINDOWS, Run, use_over_time

MOST_RUNS: Final = 200_000
"""So many runs are read at most, the last ones: some seconds of a thread."""
_HOLDS_S: Final = 30.0
"""An answer is told again for so long."""
_PATIENCE_S: Final = 20.0


class RunHistory:
    """Answers of how CPUs were used lately.

    Args:
        journal: the file.
    """

    def __init__(self, journal: Path) -> None:
        self._journal = journal
        self._told: dict[str, tuple[float, dict[str, Any]]] = {}
        self._asked: dict[str, asyncio.Future[dict[str, Any]]] = {}

    async def of(self, window: str, core: Core) -> dict[str, Any]:
        """CPUs in use in a window, one of `WINDOWS`, as `use_over_time` tells them.

        Raises:
            LedgerError: the journal cannot be read.
            TimeoutError: it is read for too long; the next who asks may find the answer.
        """
        told = self._told.get(window)
        if told is not None and time.monotonic() - told[0] < _HOLDS_S:
            return told[1]
        asked = self._asked.get(window)
        if asked is None:
            now_s, going_on = core.site.now, _going_on(core)
            asked = in_own_thread(lambda: self._read(window, now_s, going_on), "run-history")
            self._asked[window] = asked
            asked.add_done_callback(lambda done: self._settled(window, done))
        return await asyncio.wait_for(asyncio.shield(asked), _PATIENCE_S)

    def _settled(self, window: str, done: "asyncio.Future[dict[str, Any]]") -> None:
        del self._asked[window]
        if not done.cancelled() and done.exception() is None:
            self._told[window] = time.monotonic(), done.result()

    def _read(self, window: str, now_s: float, going_on: list[Run]) -> dict[str, Any]:
        begin_s = now_s - WINDOWS[window]
        with Journal(self._journal, read_only=True) as journal:
            rows = journal.ended_runs(begin_s, MOST_RUNS)
        runs = [
            Run(start_s, end_s, cpus, "thrown_away" if reason else "completed")
            for start_s, end_s, cpus, reason in rows
        ]
        is_cut = len(runs) == MOST_RUNS
        if is_cut or window == "all":  # before the oldest end that was read nothing is whole
            oldest = min((run.end_s if is_cut else run.start_s for run in runs), default=now_s)
            begin_s = max(begin_s, oldest)
        begin_s = min(begin_s, now_s - 60.0)
        return {
            "window": window, "begin_s": begin_s, "end_s": now_s, "is_cut": is_cut,
            **use_over_time([*runs, *going_on], begin_s, now_s),
        }  # fmt: skip


def _going_on(core: Core) -> list[Run]:
    now_s = core.site.now
    return [
        Run(job.start_s, now_s, job.cpus, "open")
        for job in core.site.jobs.values()
        if job.state in (RUNNING, SUSPENDED_STATE)
    ]
