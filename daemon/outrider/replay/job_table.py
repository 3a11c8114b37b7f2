"""What befell every job of a replay, and what it waited for: one row a job."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final

import numpy as np

from outrider.engine import PolicyRunner
from outrider.engine.scheduling.placement import fits
from outrider.engine.state.site import Site
from outrider.formats.tables import INTEGER, NUMBER, TEXT, Column, Rows, Table
from outrider.formats.workload import Floats
from outrider.model.decisions import DEFER, IMPOSSIBLE, UNCHOSEN, Decision
from outrider.model.disciplines import CONSERVATIVE, EASY, EASY_SJBF, FIRST_FIT, STRICT
from outrider.model.events import COMPLETED, JOB_KINDS, REMOVED, SUBMITTED, TICK, Event
from outrider.model.jobs import QUEUED, Job

REASONS: Final = (
    "no_machine", "too_wide", "behind_head", "would_delay", "deferred", "impossible",
)  # fmt: skip
"""What a queued job waits for, a closed list.

* no_machine: no CPU is free for any job;
* too_wide: some are, but no machine that it may use has the CPUs, memory, GPUs it asks for;
* behind_head: it would fit; a job before it does not, and nobody passes (discipline ``strict``);
* would_delay: it would fit, and would delay a job before it (``easy``, ``easy_sjbf``,
  ``conservative``);
* deferred: it would fit, and the policy keeps it queued;
* impossible: it fits on no machine of the site.
"""
_NO_MACHINE, _TOO_WIDE, _BEHIND, _DELAY, _DEFERRED, _IMPOSSIBLE = range(len(REASONS))
_WHY_IT_FITS_AND_WAITS: Final = {
    STRICT: _BEHIND, EASY: _DELAY, EASY_SJBF: _DELAY, CONSERVATIVE: _DELAY,
}  # fmt: skip
_ENDINGS: Final = {COMPLETED: "completed", REMOVED: "removed"}
_NEVER: Final = -inf
_TIME: Final = "seconds since the start of the trace"

JOBS: Final = Table(
    "jobs",
    "What befell a job of a replay, and what it waited for.",
    (
        Column("job", TEXT, "the job"),
        Column("user", TEXT, "its user; empty: not known"),
        Column("vo", TEXT, "its VO"),
        Column("class", TEXT, "its class; empty: none"),
        Column("submit_s", NUMBER, f"when it came, {_TIME}"),
        Column("eligible_s", NUMBER, f"when it might have started at the earliest, {_TIME}"),
        Column("start_s", NUMBER, f"when it first started, {_TIME}; null: never", True),
        Column("end_s", NUMBER, f"when it left, {_TIME}; null: it is still there", True),
        Column("ending", TEXT, "`completed` or `removed`; null: it is still there", True),
        Column("cpus", INTEGER, "CPUs that it asked for"),
        Column("estimate_s", NUMBER, "run time that the policy was told, in seconds; null: none",
               True),
        Column("runs", INTEGER, "how often it was started"),
        Column("wait_s", NUMBER, "seconds until it first started; null: it never did", True),
        Column("waited_most_for", TEXT, "what it waited longest for, one of the columns below "
               "without `_s`; null: it did not wait, or nobody can say", True),
        *(
            Column(f"{reason}_s", NUMBER, f"seconds that it waited for that: {why}; null: nobody "
                   "can say what recorded jobs waited for", True)
            for reason, why in (
                ("no_machine", "no CPU was free for any job"),
                ("too_wide", "some were, but no machine that it may use had what it asks for"),
                ("behind_head", "it would have fitted; a job before it did not, and nobody passes"),
                ("would_delay", "it would have fitted, and have delayed a job before it"),
                ("deferred", "it would have fitted, and the policy kept it queued"),
                ("impossible", "it fits on no machine of the site"),
            )
        ),
    ),
)  # fmt: skip
"""The rows of a `JobTable`."""


class JobTable:
    """Watches a replay, and has a row for every job that was submitted in it.

    Args:
        job_names: by job number.
    """

    def __init__(self, job_names: Iterable[str]) -> None:
        self._names = list(job_names)
        jobs_n = len(self._names)
        self._unstarted = _DEFERRED
        self._says_why = False
        self._jobs: dict[int, Job] = {}
        self._ends: dict[int, tuple[float, str]] = {}
        self._queued = np.zeros(jobs_n, dtype=bool)
        self._cpus = np.ones(jobs_n, dtype=np.int64)
        self._chosen = np.full(jobs_n, -1, dtype=np.int8)  # deferred or impossible, as decided
        self._asks_more: set[int] = set()  # queued ones that ask for more than CPUs
        self._waited_s: Floats = np.zeros((jobs_n, len(REASONS)))
        self._last: Event = (_NEVER, TICK, 0, None)

    def decided(self, decision: Decision) -> None:
        """Note what the policy says of a job; called for each of its decisions."""
        kept = decision.action == DEFER and decision.reason not in UNCHOSEN
        impossible = decision.action == DEFER and decision.reason == IMPOSSIBLE
        self._chosen[decision.job] = _DEFERRED if kept else _IMPOSSIBLE if impossible else -1

    def watch(
        self, events: Iterable[Event], site: Site, runners: Sequence[PolicyRunner]
    ) -> Iterator[Event]:
        """Pass events on, one by one; before each the site is as the one before has left it.

        Args:
            events: of the run.
            site: of its engine.
            runners: the first decides; none: nothing says what a job waits for.
        """
        if runners:
            self._says_why = True
            discipline = runners[0].discipline
            self._unstarted = _WHY_IT_FITS_AND_WAITS.get(discipline or FIRST_FIT, _DEFERRED)
        for event in events:
            self._settle(site)
            self._count_until(event[0], site)
            self._last = event
            yield event
        self._settle(site)

    def finish(self, end_s: float, site: Site) -> None:
        """The run is over: who still waits did so until now."""
        self._count_until(end_s, site)

    def _settle(self, site: Site) -> None:
        """Take in what the last event did to its job."""
        time_s, kind, number, _ = self._last
        if kind not in JOB_KINDS:
            return
        job = site.jobs.get(number)
        if job is None:
            self._queued[number] = False
            self._asks_more.discard(number)
            self._ends.setdefault(number, (time_s, _ENDINGS.get(kind, "")))
            return
        if kind == SUBMITTED:
            self._jobs[number] = job
        self._queued[number] = job.state == QUEUED
        self._cpus[number] = job.spec.cpus
        if job.state == QUEUED and (job.spec.resources is not None or job.spec.eligible):
            self._asks_more.add(number)
        else:
            self._asks_more.discard(number)

    def _count_until(self, now: float, site: Site) -> None:
        """Add the time since the last event to what each queued job waits for."""
        lasted_s = now - self._last[0]
        if not 0.0 < lasted_s < inf or not self._says_why:
            return
        (rows,) = self._queued.nonzero()
        if not len(rows):
            return
        widest = max(map(site.cpus_left, site.free_since), default=0)
        chosen = self._chosen[rows]
        open_or_not = _NO_MACHINE if widest == 0 else _TOO_WIDE
        why = np.where(self._cpus[rows] <= widest, self._unstarted, open_or_not)
        if widest and self._asks_more:
            for row in np.isin(rows, list(self._asks_more)).nonzero()[0]:
                if not any(fits(site, self._jobs[rows[row]].spec, m) for m in site.free_since):
                    why[row] = _TOO_WIDE
        why = np.where(
            (chosen == _IMPOSSIBLE) | ((chosen == _DEFERRED) & (widest > 0)), chosen, why
        )
        self._waited_s[rows, why] += lasted_s

    def as_rows(self) -> Rows:
        """Its rows, to be read as often as wanted; after the run."""
        return Rows(JOBS, self.rows)

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a job, in the order of submission: scalars by column, None where unknown."""
        for number, job in self._jobs.items():
            spec, waited_s = job.spec, self._waited_s[number]
            end_s, ending = self._ends.get(number, (None, None))
            most = int(waited_s.argmax()) if waited_s.any() else None
            submit_s = job.submit_s or 0.0
            yield {
                "job": self._names[number],
                "user": spec.user,
                "vo": spec.vo,
                "class": spec.job_class,
                "submit_s": submit_s,
                "eligible_s": max(submit_s, spec.eligible_s or submit_s),
                "start_s": job.first_start_s,
                "end_s": end_s,
                "ending": ending,
                "cpus": spec.cpus,
                "estimate_s": spec.estimate_s,
                "runs": job.runs,
                "wait_s": None if job.first_start_s is None else job.wait_s(job.first_start_s),
                "waited_most_for": None if most is None else REASONS[most],
                **{
                    f"{reason}_s": float(seconds) if self._says_why else None
                    for reason, seconds in zip(REASONS, waited_s, strict=True)
                },
            }
