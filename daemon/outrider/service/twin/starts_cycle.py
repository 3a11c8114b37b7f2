"""The part of the process beside the daemon that says when jobs will start, each minute."""

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
from outrider.service.twin import starts_file
from outrider.service.twin.candidates_cycle import CandidatesCycle
from outrider.service.twin.starts_file import (
    OneMoreTold,
    Score,
    StartsFile,
    StartTold,
    Wait,
    planned_near,
)

# -- one more cycle --------------------------------------------------------------------------------
# What one more job of each kind would meet here, asked now and then beside the daemon.

_REST_OF_ONE_MORE: Final = 10.0
"""So many times as long as a look took it rests: expected starts come first."""
_BUDGET_S: Final = 20.0
"""After so many seconds of a look no further kind is asked about: those left are the rarest."""


class OneMoreCycle:
    """Asks for each kind of job, and says what its class makes of the wait.

    Args:
        loaded: the configuration, with the classes' time utility functions; asked each time.
        clock: seconds that only ever go on.

    Attributes:
        told: what was said last.
        asked_s: up to when the site was seen for it, Unix seconds; None: it was never asked.
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
        self.told: list[OneMoreTold] = []
        self.asked_s: float | None = None

    def look(self, site: FollowedSite, outlook: Outlook, discipline: Discipline) -> bool:
        """Ask if it is time; whether it was. What goes wrong leaves nothing told, and a log line.

        Args:
            site: followed up to now.
            outlook: on it.
            discipline: the rule of its batch system.
        """
        began = self._clock()
        if began < self._rests_until:
            return False
        try:
            utilities = self._loaded().utilities()
            told = []
            for one in one_more(site, outlook, discipline, self._rng):
                told.append(_told(one, utilities))
                if self._clock() - began >= _BUDGET_S:
                    break
            self.told, self.asked_s = told, site.now_s
        except Exception:  # expected starts must go on
            log.exception("one_more_job_failed")
            self.told, self.asked_s = [], None
        ended = self._clock()
        self._rests_until = ended + _REST_OF_ONE_MORE * (ended - began)
        return True


def _told(one: OneMore, utilities: Mapping[str, TimeUtility]) -> OneMoreTold:
    spec, function = one.kind.spec, utilities.get(one.kind.job_class)
    worth = None
    if function is not None and len(one.waits_s):
        worth = float(function.unit(one.waits_s + one.runs_s, one.runs_s).mean())
    return OneMoreTold(
        vo=one.kind.vo,
        job_class=one.kind.job_class,
        cpus=spec.cpus,
        estimate_s=spec.estimate_s,
        n=one.kind.n,
        wait_s=None if one.wait_s is None else Wait(*one.wait_s.tolist()),
        utility=worth,
    )


# -- starts cycle ----------------------------------------------------------------------------------

_LEARNED_FROM_S: Final = 14 * 86_400.0
"""Of a journal that is longer, the questions of the last two weeks are asked anew at the start."""
_LEARNS_FOR_S: Final = 30.0
"""With about so many seconds of a core: the first answer must not be hours away. By a clock on the
wall a busy host would leave nothing to learn from."""
_REST: Final = 2.0
"""So many times as long as a look took it rests at least: a long queue must not take all."""
log = structlog.get_logger()


class StartsCycle:
    """Follows the journal of a state directory, and writes down when jobs will start.

    Whatever goes wrong is written down in place of an answer, and tried again from the beginning
    of the journal.

    Args:
        folder: the state directory.
        journal: its journal.
        every_s: from one look to the next; asked each time, 0: none now.
        clock: Unix seconds now.
        candidates: also asks about starts under the policies in shadow; None: nobody does.
        one_more: also asks what one more job would meet; None: nobody does.
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
        """Look again and again, until it is told to stop."""
        while not stopped.is_set():
            every_s, began_s = self._every_s(), time.monotonic()
            rest_s = _REST * self.look().took_s if every_s > 0 else 0.0
            stopped.wait(max(every_s - (time.monotonic() - began_s), rest_s, 1.0))

    def look(self) -> StartsFile:
        """Look now, and write it down; then, now and then, what is said of candidates, too."""
        began_s = time.monotonic()
        try:
            told = self._told(began_s)
            self._write(told)
            if self._ask_one_more():
                told = self._with_one_more(told)
                self._write(told)
            if self._ask_candidates(told):
                told = self._with_candidates(told)
                self._write(told)
        except Exception as error:
            # a damaged journal, one that was pruned or put in place of another, or a fault of
            # ours: nothing that was gathered is to be believed
            self._site = self._outlook = None
            known = isinstance(error, OutriderError)
            if not known:
                log.exception("expected_starts_failed")
            why = str(error) if known else f"{type(error).__name__}: {error}"
            took_s = time.monotonic() - began_s
            told = StartsFile(asked_s=self._clock(), took_s=took_s, problem=why)
            self._write(told)
        return told

    def _write(self, told: StartsFile) -> None:
        try:
            starts_file.write(self._folder, told)
        except OSError as error:
            log.error("expected_starts_not_saved", error=str(error))

    def _told(self, began_s: float) -> StartsFile:
        site, outlook = self._followed()
        until_s = site.recorded_until_s()
        past = PastHours(until_s - _LEARNED_FROM_S, until_s, _LEARNS_FOR_S)
        if site.seq:
            past.was_there(site.now_s)
        for now_s in site.catch_up():
            if past.is_due(now_s):
                before_s = time.thread_time()
                outlook.look()
                past.took(now_s, time.thread_time() - before_s)
        planned = planned_near(self._folder, site.now_s)
        expected = outlook.look(planned)
        jobs = {name: None if one is None else StartTold(*one) for name, one in expected.items()}
        told = self._with_candidates(
            StartsFile(
                asked_s=site.now_s, took_s=time.monotonic() - began_s, discipline=self._discipline,
                compiled=HAS_COMPILER, jobs=jobs,
                planned={job: planned[job] for job in jobs if job in planned},
                scores=msgspec.convert(outlook.scores(), dict[str, Score]),
            )
        )  # fmt: skip
        return self._with_one_more(told)

    def _ask_one_more(self) -> bool:
        """Ask what one more job would meet, if it is time; whether it was."""
        if self._one_more is None or self._site is None or self._outlook is None:
            return False
        return self._one_more.look(self._site, self._outlook, self._discipline)

    def _with_one_more(self, told: StartsFile) -> StartsFile:
        """The same with what was said of that last."""
        if self._one_more is None:
            return told
        one = self._one_more
        return msgspec.structs.replace(told, one_more=one.told, one_more_asked_s=one.asked_s)

    def _ask_candidates(self, told: StartsFile) -> bool:
        """Ask about starts under the candidates, if it is time; whether it was."""
        if self._candidates is None or self._site is None or self._outlook is None:
            return False
        return self._candidates.look(self._site, self._outlook.moved, told.jobs)

    def _with_candidates(self, told: StartsFile) -> StartsFile:
        """The same with what was said of them last, of the jobs that wait still."""
        if self._candidates is None:
            return told
        under = self._candidates.told
        return msgspec.structs.replace(
            told, candidates=under.of_jobs(told.jobs), candidates_asked_s=under.asked_s,
            candidate_problems=under.problems,
        )  # fmt: skip

    def _followed(self) -> tuple[FollowedSite, Outlook]:
        if self._site is None or self._outlook is None:
            if not self._journal.exists():
                raise LedgerError(f"{self._journal}: is not there yet")
            facts = facts_on_record(self._journal)
            discipline: Any = FIRST_FIT if facts is None else facts.discipline
            # reservations for all of them are simulated as one for the first, and who passes it
            # in the order of the queue
            as_easy = discipline in (EASY_SJBF, CONSERVATIVE)
            self._discipline = EASY if as_easy else discipline
            self._site = FollowedSite(self._journal, self._folder / SNAPSHOTS_NAME)
            self._outlook = Outlook(self._site, self._discipline)
        return self._site, self._outlook


# -- past hours ------------------------------------------------------------------------------------
# Which full hours of the past are asked about anew when the process beside the daemon begins.


class PastHours:
    """All of them, as if it had been there; every so many where each takes long.

    Args:
        from_s: none before, Unix seconds.
        until_s: up to when the record tells.
        budget_s: for how long it may ask in all, seconds; but for the first hour, with which the
            loops are compiled.
    """

    def __init__(self, from_s: float, until_s: float, budget_s: float) -> None:
        self._from_s = from_s
        self._until_s = until_s
        self._budget_s = budget_s
        self._next_s: float | None = None
        self._is_first = True

    def was_there(self, time_s: float) -> None:
        """It asked at that time: only where it missed whole hours since are some asked anew."""
        self._next_s = _full_hour_after(time_s) + HOUR_S

    def is_due(self, now_s: float) -> bool:
        """Return whether it is to be asked now, as the record goes on; its first moment never counts."""
        if self._next_s is None:
            self._next_s = _full_hour_after(max(now_s, self._from_s))
        return now_s >= self._next_s

    def took(self, now_s: float, seconds: float) -> None:
        """It was asked then, and that took so long: chooses the next hour."""
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
