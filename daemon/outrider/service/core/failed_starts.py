"""Starts that failed within minutes, by machine and user, and the black holes among machines.

What is looked at and the bound are those of the weekly report (`outrider.report.offenders`); the
time is the last day, and it begins anew with each start of the daemon.
"""

import threading
import time
from typing import TYPE_CHECKING, Final

import structlog

from outrider.model.jobs import Job
from outrider.report.runs import FAILING, WITHIN_S

if TYPE_CHECKING:
    from outrider.report.offenders import BlackHole

log = structlog.get_logger()

LOOK_BACK_S: Final = 86_400.0
MOST_TRIES: Final = 50_000
"""So many pairs of machine and job at most; beyond, the oldest are forgotten."""
FEWEST_FAILED: Final = 5
"""Of fewer failed starts in all nothing is worked out: chance alone does as much."""
_WORKED_OUT_FOR_S: Final = 60.0
"""What was worked out holds so long."""
_PATIENCE_S: Final = 0.02
"""So long the working out is waited for: a small site's is done at once, a large one's is shown at
the next asking."""


class FailedStarts:
    """The last day's jobs on each machine; a job counts once a machine, as failed if it ever was.

    Args:
        most: pairs of machine and job that are remembered.
    """

    def __init__(self, most: int = MOST_TRIES) -> None:
        self._most = most
        self._tries: dict[tuple[int, int], tuple[float, str, bool]] = {}  # the oldest first
        self._found: list[BlackHole] = []
        self._is_noted = False
        self._due_s = 0.0
        self._worker: threading.Thread | None = None

    def note(self, job: Job, end_s: float, reason: str) -> None:
        """A run has ended: of `job`, while it still has its machine.

        Runs that ended early for another reason tell nothing of the machine.

        Args:
            job: whose run it was.
            end_s: when it ended, event time.
            reason: one of `outrider.model.events.EVICTION_REASONS`; empty: it completed.
        """
        failed = bool(reason) and end_s - job.start_s <= WITHIN_S
        if failed and reason not in FAILING:
            return
        key = (job.machine, job.number)
        _, _, before = self._tries.pop(key, (0.0, "", False))
        self._tries[key] = (end_s, job.spec.user, failed or before)
        if len(self._tries) > self._most:
            del self._tries[next(iter(self._tries))]
        self._is_noted = True

    def of_machine(self, machine: int, now_s: float) -> tuple[int, int]:
        """Jobs of the last day that were tried on a machine, and how many failed to start."""
        found = [
            failed
            for (place, _), (end_s, _, failed) in self._tries.items()
            if place == machine and end_s >= now_s - LOOK_BACK_S
        ]
        return len(found), sum(found)

    def black_holes(self, now_s: float) -> "list[BlackHole]":
        """The machines that are black holes now, event time; a minute or two old at most."""
        self._forget(now_s - LOOK_BACK_S)
        at_work = self._worker is not None and self._worker.is_alive()
        if self._is_noted and not at_work and time.monotonic() >= self._due_s:
            self._is_noted = False
            self._due_s = time.monotonic() + _WORKED_OUT_FOR_S
            tries = list(self._tries.items())
            self._worker = threading.Thread(
                target=self._work_out, args=(tries,), name="black-holes", daemon=True
            )
            self._worker.start()
            self._worker.join(_PATIENCE_S)
        return self._found

    def _forget(self, before_s: float) -> None:
        """Leave out what is older, as far as it stands first."""
        old = []
        for key, (end_s, _, _) in self._tries.items():
            if end_s >= before_s:
                break
            old.append(key)
        for key in old:
            del self._tries[key]
        self._is_noted |= bool(old)

    def _work_out(self, tries: list[tuple[tuple[int, int], tuple[float, str, bool]]]) -> None:
        """Some tenths of a second of 50,000 tries on a thousand machines: hence its own thread."""
        counts: dict[tuple[int, str], tuple[int, int]] = {}
        for (machine, _), (_, user, failed) in tries:
            tried, bad = counts.get((machine, user), (0, 0))
            counts[machine, user] = tried + 1, bad + failed
        if sum(bad for _, bad in counts.values()) < FEWEST_FAILED:
            self._found = []
            return
        try:
            from outrider.report.offenders import black_holes  # it takes scipy: not at each start

            self._found = black_holes(counts)
        except Exception as error:  # noqa: BLE001 - nobody waits for the thread; what was found stays
            log.warning("black_hole_check_failed", error=f"{type(error).__name__}: {error}")
