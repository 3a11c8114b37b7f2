"""Starts that failed within minutes, by machine and user, and detection of black holes.

The statistic and its bound are those of the weekly report (`outrider.report.offenders`). The
period is the last day, and it starts afresh with each start of the daemon.
"""

import time
from concurrent.futures import Future, wait
from functools import partial
from typing import TYPE_CHECKING, Final

import structlog

from outrider.model.jobs import Job
from outrider.report.runs import FAILING, WITHIN_S
from outrider.service.host.threads import in_thread

if TYPE_CHECKING:
    from outrider.report.offenders import BlackHole

log = structlog.get_logger()

LOOK_BACK_S: Final = 86_400.0
MAX_TRIES: Final = 50_000
"""Largest number of pairs of machine and job; beyond it the oldest are dropped."""
MIN_FAILED: Final = 5
"""Smallest number of failed starts for an analysis; fewer can occur at random."""
_RESULT_LIFETIME_S: Final = 60.0
"""Lifetime of a result, in seconds."""
_RESULT_TIMEOUT_S: Final = 0.02
"""Seconds to wait for a result. A small site's is available immediately.

A large site's is returned by the next call."""


class FailedStarts:
    """The jobs of the last day on each machine, and whether their starts failed.

    A job counts once per machine, as failed if any of its starts there failed.

    Args:
        max_tries: pairs of machine and job that are remembered.
    """

    def __init__(self, max_tries: int = MAX_TRIES) -> None:
        self._max_tries = max_tries
        self._tries: dict[tuple[int, int], tuple[float, str, bool]] = {}  # the oldest first
        self._found: list[BlackHole] = []
        self._is_noted = False
        self._due_s = 0.0
        self._work: Future[None] | None = None

    def note(self, job: Job, end_s: float, reason: str) -> None:
        """Note that a run of `job` has ended, while the job still has its machine.

        Runs that ended early for another reason are ignored: they show nothing about the machine.

        Args:
            job: whose run it was.
            end_s: when it ended, in event time.
            reason: one of `outrider.model.events.EVICTION_REASONS`; empty: it completed.
        """
        failed = bool(reason) and end_s - job.start_s <= WITHIN_S
        if failed and reason not in FAILING:
            return
        key = (job.machine, job.number)
        _, _, before = self._tries.pop(key, (0.0, "", False))
        self._tries[key] = (end_s, job.spec.user, failed or before)
        if len(self._tries) > self._max_tries:
            del self._tries[next(iter(self._tries))]
        self._is_noted = True

    def of_machine(self, machine: int, now_s: float) -> tuple[int, int]:
        """Return the number of the last day's jobs tried on a machine, and of those that failed."""
        found = [
            failed
            for (place, _), (end_s, _, failed) in self._tries.items()
            if place == machine and end_s >= now_s - LOOK_BACK_S
        ]
        return len(found), sum(found)

    def black_holes(self, now_s: float) -> "list[BlackHole]":
        """Return the machines that are black holes now; at most a minute or two old."""
        self._forget(now_s - LOOK_BACK_S)
        at_work = self._work is not None and not self._work.done()
        if self._is_noted and not at_work and time.monotonic() >= self._due_s:
            self._is_noted = False
            self._due_s = time.monotonic() + _RESULT_LIFETIME_S
            tries = list(self._tries.items())
            self._work = in_thread(partial(self._work_out, tries), "black-holes")
            wait((self._work,), _RESULT_TIMEOUT_S)
        return self._found

    def _forget(self, before_s: float) -> None:
        """Drop older entries from the front of the table."""
        old = []
        for key, (end_s, _, _) in self._tries.items():
            if end_s >= before_s:
                break
            old.append(key)
        for key in old:
            del self._tries[key]
        self._is_noted |= bool(old)

    def _work_out(self, tries: list[tuple[tuple[int, int], tuple[float, str, bool]]]) -> None:
        """Find the black holes; takes tenths of a second at a large site, hence its own thread."""
        counts: dict[tuple[int, str], tuple[int, int]] = {}
        for (machine, _), (_, user, failed) in tries:
            tried, bad = counts.get((machine, user), (0, 0))
            counts[machine, user] = tried + 1, bad + failed
        if sum(bad for _, bad in counts.values()) < MIN_FAILED:
            self._found = []
            return
        try:
            from outrider.report.offenders import black_holes  # imports scipy: not at each start

            self._found = black_holes(counts)
        except Exception as error:  # noqa: BLE001 - in a thread: the last result stays
            log.warning("black_hole_check_failed", error=f"{type(error).__name__}: {error}")
