"""The part of the twin process that forecasts the starts of waiting jobs, each minute."""

import math
import threading
import time
from collections.abc import Callable, Mapping
from math import ceil, inf
from pathlib import Path
from typing import Any, Final

import msgspec
import numpy as np
import structlog

from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.one_more import OneMore, one_more
from outrider.forecast.outlook import Outlook
from outrider.forecast.running import HAS_COMPILER
from outrider.journal.site_facts import facts_on_record
from outrider.model.errors import LedgerError, OutriderError
from outrider.model.localtime import HOUR_S
from outrider.model.modes import CONSERVATIVE, EASY, EASY_SJBF, FIRST_FIT, Discipline
from outrider.model.utility import TimeUtility
from outrider.service.config.loaded import LoadedConfig
from outrider.service.journal.recording import SNAPSHOTS_NAME
from outrider.service.shapes.values import Score
from outrider.service.twin import starts_file
from outrider.service.twin.candidates_cycle import CandidatesCycle
from outrider.service.twin.starts_file import (
    OneMoreForecast,
    StartInterval,
    StartsFile,
    Wait,
    planned_near,
)

# -- one more cycle --------------------------------------------------------------------------------
# Periodic forecasts of the wait of a hypothetical extra job of each kind.

_REST_OF_ONE_MORE: Final = 10.0
"""Pause after a forecast, as a multiple of its duration: expected starts come first."""
_BUDGET_S: Final = 20.0
"""Seconds of a forecast after which the remaining kinds are left out: they are the rarest."""


class OneMoreCycle:
    """Forecasts for one more job of each kind: its wait, and the utility of its class.

    Args:
        loaded: returns the configuration, with the classes' time utility functions.
        clock: returns monotonic seconds.

    Attributes:
        forecasts: the last forecasts.
        asked_s: time up to which the site was seen for them, Unix seconds; None: never.
    """

    def __init__(
        self,
        loaded: Callable[[], LoadedConfig],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._loaded = loaded
        self._clock = clock
        self._rests_until = -math.inf
        self._rng = np.random.default_rng(0)
        self.forecasts: list[OneMoreForecast] = []
        self.asked_s: float | None = None

    def look(self, site: FollowedSite, outlook: Outlook, discipline: Discipline) -> bool:
        """Make new forecasts if they are due; return True if they were.

        An error is logged and leaves no forecasts.

        Args:
            site: the site, followed up to now.
            outlook: the forecaster of its starts.
            discipline: the rule of its batch system.
        """
        began = self._clock()
        if began < self._rests_until:
            return False
        try:
            utilities = self._loaded().utilities()
            forecasts = []
            for one in one_more(site, outlook, discipline, self._rng):
                forecasts.append(_with_utility(one, utilities))
                if self._clock() - began >= _BUDGET_S:
                    break
            self.forecasts, self.asked_s = forecasts, site.now_s
        except Exception:  # must not stop the forecasts of starts
            log.exception("one_more_job_failed")
            self.forecasts, self.asked_s = [], None
        ended = self._clock()
        self._rests_until = ended + _REST_OF_ONE_MORE * (ended - began)
        return True


def _with_utility(one: OneMore, utilities: Mapping[str, TimeUtility]) -> OneMoreForecast:
    spec, function = one.kind.spec, utilities.get(one.kind.job_class)
    utility = None
    if function is not None and len(one.waits_s):
        utility = float(function.unit(one.waits_s + one.runs_s, one.runs_s).mean())
    return OneMoreForecast(
        vo=one.kind.vo,
        job_class=one.kind.job_class,
        cpus=spec.cpus,
        estimate_s=spec.estimate_s,
        n=one.kind.n,
        wait_s=None if one.wait_s is None else Wait(*one.wait_s.tolist()),
        utility=utility,
    )


# -- starts cycle ----------------------------------------------------------------------------------

_LEARNED_FROM_S: Final = 14 * 86_400.0
"""Length of the past whose hourly forecasts are repeated at the start, to learn from them."""
_LEARNS_FOR_S: Final = 30.0
"""CPU-seconds for that: the first result must not be hours away.

In wall-clock time, a busy host would leave nothing to learn from."""
_REST: Final = 2.0
"""Least pause after a forecast, as a multiple of its duration: long queues are slow."""
log = structlog.get_logger()


class StartsCycle:
    """Periodic forecasts of starts from the journal of a state directory.

    An error is written to the file in place of a forecast; the next try begins from the start of
    the journal.

    Args:
        folder: the state directory.
        journal: its journal.
        every_s: returns the seconds from one forecast to the next; 0: none now.
        clock: returns Unix seconds.
        candidates: also forecasts starts under the policies in shadow; None: not wanted.
        one_more: also forecasts the wait of one more job; None: not wanted.
    """

    def __init__(
        self,
        folder: Path,
        journal: Path,
        every_s: Callable[[], float],
        clock: Callable[[], float] = time.time,
        candidates: CandidatesCycle | None = None,
        one_more: OneMoreCycle | None = None,
    ) -> None:
        self._folder = folder
        self._journal = journal
        self._every_s = every_s
        self._clock = clock
        self._candidates = candidates
        self._one_more = one_more
        self._site: FollowedSite | None = None
        self._outlook: Outlook | None = None
        self._discipline: Discipline = FIRST_FIT

    def run(self, stopped: threading.Event) -> None:
        """Make forecasts periodically until `stopped` is set."""
        while not stopped.is_set():
            every_s, began_s = self._every_s(), time.monotonic()
            rest_s = _REST * self.look().took_s if every_s > 0 else 0.0
            stopped.wait(max(every_s - (time.monotonic() - began_s), rest_s, 1.0))

    def look(self) -> StartsFile:
        """Make a forecast and write it; add those of candidates and one more job when due."""
        began_s = time.monotonic()
        try:
            starts = self._forecast(began_s)
            self._write(starts)
            if self._ask_one_more():
                starts = self._with_one_more(starts)
                self._write(starts)
            if self._ask_candidates(starts):
                starts = self._with_candidates(starts)
                self._write(starts)
        except Exception as error:
            # a damaged, pruned or replaced journal, or an internal error: the state gathered so
            # far is unreliable
            self._site = self._outlook = None
            known = isinstance(error, OutriderError)
            if not known:
                log.exception("expected_starts_failed")
            why = str(error) if known else f"{type(error).__name__}: {error}"
            took_s = time.monotonic() - began_s
            starts = StartsFile(asked_s=self._clock(), took_s=took_s, problem=why)
            self._write(starts)
        return starts

    def _write(self, starts: StartsFile) -> None:
        try:
            starts_file.write(self._folder, starts)
        except OSError as error:
            log.error("expected_starts_not_saved", error=str(error))

    def _forecast(self, began_s: float) -> StartsFile:
        site, outlook = self._followed()
        until_s = site.recorded_until_s()
        past = PastHours(until_s - _LEARNED_FROM_S, until_s, _LEARNS_FOR_S)
        if site.seq:
            past.mark_asked(site.now_s)
        for now_s in site.catch_up():
            if past.is_due(now_s):
                before_s = time.thread_time()
                outlook.look()
                past.took(now_s, time.thread_time() - before_s)
        planned = planned_near(self._folder, site.now_s)
        expected = outlook.look(planned)
        jobs = {
            name: None if one is None else StartInterval(*one) for name, one in expected.items()
        }
        starts = self._with_candidates(
            StartsFile(
                asked_s=site.now_s, took_s=time.monotonic() - began_s, discipline=self._discipline,
                compiled=HAS_COMPILER, jobs=jobs, unknown=outlook.unknown,
                planned={job: planned[job] for job in jobs if job in planned},
                scores=msgspec.convert(outlook.scores(), dict[str, Score]),
            )
        )  # fmt: skip
        return self._with_one_more(starts)

    def _ask_one_more(self) -> bool:
        """Forecast the wait of one more job, if that is due; return True if it was."""
        if self._one_more is None or self._site is None or self._outlook is None:
            return False
        return self._one_more.look(self._site, self._outlook, self._discipline)

    def _with_one_more(self, starts: StartsFile) -> StartsFile:
        """Return a copy with the last forecasts for one more job."""
        if self._one_more is None:
            return starts
        one = self._one_more
        return msgspec.structs.replace(starts, one_more=one.forecasts, one_more_asked_s=one.asked_s)

    def _ask_candidates(self, starts: StartsFile) -> bool:
        """Forecast starts under the candidates, if that is due; return True if it was."""
        if self._candidates is None or self._site is None or self._outlook is None:
            return False
        return self._candidates.look(self._site, self._outlook.moved, starts.jobs)

    def _with_candidates(self, starts: StartsFile) -> StartsFile:
        """Return a copy with the last forecasts under the candidates, for jobs that still wait."""
        if self._candidates is None:
            return starts
        under = self._candidates.result
        return msgspec.structs.replace(
            starts, candidates=under.of_jobs(starts.jobs), candidates_asked_s=under.asked_s,
            candidate_problems=under.problems,
        )  # fmt: skip

    def _followed(self) -> tuple[FollowedSite, Outlook]:
        if self._site is None or self._outlook is None:
            if not self._journal.exists():
                raise LedgerError(f"{self._journal}: does not exist yet; start the daemon")
            facts = facts_on_record(self._journal)
            discipline: Any = FIRST_FIT if facts is None else facts.discipline
            # reservations for all jobs are simulated as one for the first; jobs pass it in queue
            # order
            as_easy = discipline in (EASY_SJBF, CONSERVATIVE)
            self._discipline = EASY if as_easy else discipline
            self._site = FollowedSite(self._journal, self._folder / SNAPSHOTS_NAME)
            self._outlook = Outlook(self._site, self._discipline)
        return self._site, self._outlook


# -- past hours ------------------------------------------------------------------------------------
# Selection of the past hours to forecast again when the twin process starts.


class PastHours:
    """Selection of full past hours: all of them, or every n-th if each takes long.

    Args:
        from_s: start of the selection, Unix seconds.
        until_s: end of the record.
        budget_s: seconds for all these forecasts, without the first, which compiles the loops.
    """

    def __init__(self, from_s: float, until_s: float, budget_s: float) -> None:
        self._from_s = from_s
        self._until_s = until_s
        self._budget_s = budget_s
        self._next_s: float | None = None
        self._is_first = True

    def mark_asked(self, time_s: float) -> None:
        """Record a forecast at this time; only full hours missed since then are repeated."""
        self._next_s = _full_hour_after(time_s) + HOUR_S

    def is_due(self, now_s: float) -> bool:
        """Return True if a forecast is due at this time of the record, never at its first."""
        if self._next_s is None:
            self._next_s = _full_hour_after(max(now_s, self._from_s))
        return now_s >= self._next_s

    def took(self, now_s: float, seconds: float) -> None:
        """Record the duration of a forecast, and select the next hour."""
        if self._is_first:
            self._is_first, seconds = False, 0.0
        self._budget_s -= seconds
        hours = max(0.0, self._until_s - now_s) / HOUR_S
        if self._budget_s > 0.0:
            step = max(1, ceil(seconds * hours / self._budget_s))
            self._next_s = _full_hour_after(now_s) + (step - 1) * HOUR_S
        else:
            self._next_s = inf


def _full_hour_after(time_s: float) -> float:
    return (time_s // HOUR_S + 1.0) * HOUR_S
