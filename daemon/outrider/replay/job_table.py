"""Job table of a replay: one row per job with its times and the reasons it waited."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np

from outrider.engine import PolicyRunner
from outrider.engine.accounting.distribution import Distribution, summary
from outrider.engine.scheduling.placement import fits
from outrider.engine.state.site import Site
from outrider.formats.tables import INTEGER, NUMBER, TEXT, Column, Rows, Table
from outrider.formats.workload import Floats
from outrider.model.decisions import DEFER, UNCHOSEN, Decision
from outrider.model.decisions import IMPOSSIBLE as IMPOSSIBLE_JOB
from outrider.model.events import COMPLETED, JOB_KINDS, REMOVED, SUBMITTED, TICK, Event
from outrider.model.jobs import QUEUED, Job
from outrider.model.modes import CONSERVATIVE, EASY, EASY_SJBF, FIRST_FIT, STRICT

# -- queue times -----------------------------------------------------------------------------------
# Seconds that queued jobs wait for each reason, counted once for all jobs of one size.

REASONS: Final = (
    "no_machine", "too_wide", "behind_head", "would_delay", "deferred", "impossible",
)  # fmt: skip
"""Reasons for which a queued job waits, a closed list.

* no_machine: no CPU is free for any job;
* too_wide: some are, but no machine that it may use has the CPUs, memory, GPUs it asks for;
* behind_head: it would fit; a job before it does not, and no job passes (discipline ``strict``);
* would_delay: it would fit, and would delay a job before it (``easy``, ``easy_sjbf``,
  ``conservative``);
* deferred: it would fit, and the policy keeps it queued;
* impossible: it fits on no machine of the site.
"""
NO_MACHINE, TOO_WIDE, BEHIND, DELAY, DEFERRED, IMPOSSIBLE = range(len(REASONS))


class _Size:
    """Counts for queued jobs that fit, or do not, at the same moments.

    Attributes:
        cpus: requested CPUs.
        jobs_n: number of these jobs in the queue.
        fitting_s: seconds in which they would have fitted on a free machine.
        narrow_s: seconds in which they would not, though some machine was free.
    """

    __slots__ = ("cpus", "fitting_s", "jobs_n", "narrow_s")

    def __init__(self, cpus: int) -> None:
        self.cpus = cpus
        self.jobs_n = 0
        self.fitting_s = self.narrow_s = 0.0

    def count(self, seconds: float, fits: bool) -> None:
        """Add a period in which they would have fitted, or not."""
        if fits:
            self.fitting_s += seconds
        else:
            self.narrow_s += seconds


class _Mark(NamedTuple):
    """Counts at the time a job joined the queue, or its choice last changed."""

    size: _Size
    closed_s: float
    fitting_s: float
    narrow_s: float


class QueueTimes:
    """Counter of waiting time, once for all jobs that ask for the same CPUs and nothing else.

    A job's part is the difference between two marks. Marks are set when it joins the queue, when
    the policy's choice for it changes, and when it leaves. A job that is bound (it asks for more
    than CPUs) is counted separately whenever a machine is free.

    Args:
        jobs_n: number of all jobs; job numbers are below it.
        unstarted: the reason of a job that would fit and is not deferred.

    Attributes:
        waited_s: (jobs_n, reasons) seconds, of jobs that are queued up to their last mark.
    """

    def __init__(self, jobs_n: int, unstarted: int) -> None:
        self.waited_s: Floats = np.zeros((jobs_n, len(REASONS)))
        self._unstarted = unstarted
        self._closed_s = 0.0
        self._sizes: dict[int, _Size] = {}
        self._bound: dict[int, _Size] = {}
        self._marks: dict[int, _Mark] = {}
        self._chosen: dict[int, int] = {}

    @property
    def widest(self) -> int:
        """Maximal CPUs that a queued job asks for; 0 if none is queued."""
        return max((*self._sizes, *(size.cpus for size in self._bound.values())), default=0)

    def join(self, job: int, cpus: int, is_bound: bool) -> None:
        """Add a job to the queue, or update what it asks for.

        Args:
            job: its number.
            cpus: requested CPUs.
            is_bound: it asks for more than CPUs (`JobSpec.is_bound`).
        """
        self.leave(job)
        if is_bound:
            size = self._bound[job] = _Size(cpus)
        else:
            size = self._sizes.setdefault(cpus, _Size(cpus))
        size.jobs_n += 1
        self._mark(job, size)

    def leave(self, job: int) -> None:
        """Remove a job from the queue; do nothing if it is not in it."""
        if job not in self._marks:
            return
        self._settle(job)
        size = self._marks.pop(job).size
        size.jobs_n -= 1
        if self._bound.pop(job, None) is None and not size.jobs_n:
            del self._sizes[size.cpus]

    def choose(self, job: int, chosen: int | None) -> None:
        """Set the policy's choice for a job: `DEFERRED`, `IMPOSSIBLE`, or None."""
        if self._chosen.get(job) == chosen:
            return
        if job in self._marks:  # the time so far belongs to the earlier choice
            self._settle(job)
        if chosen is None:
            del self._chosen[job]
        else:
            self._chosen[job] = chosen

    def pass_time(self, seconds: float, widest: int, fits: Callable[[int], bool]) -> None:
        """Add a period to the counts of all queued jobs.

        Args:
            seconds: its length.
            widest: maximal CPUs that a free machine had left, or as many as any job asks for.
            fits: whether a bound job, by its number, would have fitted on a free machine.
        """
        if not widest:
            self._closed_s += seconds
            return
        for cpus, size in self._sizes.items():
            size.count(seconds, cpus <= widest)
        for job, size in self._bound.items():
            # a deferred or impossible job counts both the same way, and `fits` is slow
            size.count(seconds, job in self._chosen or fits(job))

    def settle(self) -> None:
        """Update `waited_s` of all queued jobs to now."""
        for job in self._marks:
            self._settle(job)

    def _mark(self, job: int, size: _Size) -> None:
        self._marks[job] = _Mark(size, self._closed_s, size.fitting_s, size.narrow_s)

    def _settle(self, job: int) -> None:
        """Add the counts since a job's mark to its waiting times, and set a new mark."""
        mark = self._marks[job]
        size = mark.size
        closed_s = self._closed_s - mark.closed_s
        fitting_s, narrow_s = size.fitting_s - mark.fitting_s, size.narrow_s - mark.narrow_s
        waited_s, chosen = self.waited_s[job], self._chosen.get(job)
        waited_s[IMPOSSIBLE if chosen == IMPOSSIBLE else NO_MACHINE] += closed_s
        waited_s[TOO_WIDE if chosen is None else chosen] += narrow_s
        waited_s[self._unstarted if chosen is None else chosen] += fitting_s
        self._mark(job, size)


# -- job table -------------------------------------------------------------------------------------

_WHY_IT_FITS_AND_WAITS: Final = {
    STRICT: BEHIND, EASY: DELAY, EASY_SJBF: DELAY, CONSERVATIVE: DELAY,
}  # fmt: skip
_ENDINGS: Final = {COMPLETED: "completed", REMOVED: "removed"}
_NEVER: Final = -inf
_TIME: Final = "seconds since the start of the trace"
JOBS: Final = Table(
    "jobs",
    "Times of a job in a replay, and the reasons it waited.",
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
        Column("estimate_s", NUMBER, "run time estimate of the policy, in seconds; null: none",
               True),
        Column("runs", INTEGER, "how often it was started"),
        Column("wait_s", NUMBER, "seconds until it first started; null: it never did", True),
        Column("waited_most_for", TEXT, "what it waited longest for, one of the columns below "
               "without `_s`; null: it did not wait, or that is not known", True),
        *(
            Column(f"{reason}_s", NUMBER, f"seconds that it waited for that: {why}; null: not "
                   "known, as for recorded jobs", True)
            for reason, why in (
                ("no_machine", "no CPU was free for any job"),
                ("too_wide", "some were, but no machine that it may use had what it asks for"),
                ("behind_head", "it would have fitted; a job before it did not, and no job passes"),
                ("would_delay", "it would have fitted, and have delayed a job before it"),
                ("deferred", "it would have fitted, and the policy kept it queued"),
                ("impossible", "it fits on no machine of the site"),
            )
        ),
    ),
)  # fmt: skip
"""Columns of the rows of a `JobTable`."""


class JobTable:
    """Recorder of a replay with a row for every job that was submitted in it.

    Args:
        job_names: by job number.
    """

    def __init__(self, job_names: Iterable[str]) -> None:
        self._names = list(job_names)
        self._times = QueueTimes(len(self._names), DEFERRED)
        self._says_why = False
        self._jobs: dict[int, Job] = {}
        self._ends: dict[int, tuple[float, str]] = {}
        self._last: Event = (_NEVER, TICK, 0, None)

    def decided(self, decision: Decision) -> None:
        """Record the policy's choice for a job; called for each of its decisions."""
        chosen = None
        if decision.action == DEFER:
            if decision.reason == IMPOSSIBLE_JOB:
                chosen = IMPOSSIBLE
            elif decision.reason not in UNCHOSEN:
                chosen = DEFERRED
        self._times.choose(decision.job, chosen)

    def watch(
        self, events: Iterable[Event], site: Site, runners: Sequence[PolicyRunner]
    ) -> Iterator[Event]:
        """Yield the events one by one; before each the site has applied the one before.

        Args:
            events: of the run.
            site: of its engine.
            runners: the first decides; without any, reasons are not known.
        """
        if runners:
            self._says_why = True
            discipline = runners[0].discipline
            unstarted = _WHY_IT_FITS_AND_WAITS.get(discipline or FIRST_FIT, DEFERRED)
            self._times = QueueTimes(len(self._names), unstarted)
        for event in events:
            self._settle(site)
            self._count_until(event[0], site)
            self._last = event
            yield event
        self._settle(site)

    def finish(self, end_s: float, site: Site) -> None:
        """End the run: jobs that still wait did so until now."""
        self._count_until(end_s, site)
        self._times.settle()

    def _settle(self, site: Site) -> None:
        """Record the effect of the last event on its job."""
        time_s, kind, number, _ = self._last
        if kind not in JOB_KINDS:
            return
        job = site.jobs.get(number)
        if job is None:
            self._times.leave(number)
            self._ends.setdefault(number, (time_s, _ENDINGS.get(kind, "")))
            return
        if kind == SUBMITTED:
            self._jobs[number] = job
        if job.state == QUEUED:
            self._times.join(number, job.spec.cpus, job.spec.is_bound)
        else:
            self._times.leave(number)

    def _count_until(self, now: float, site: Site) -> None:
        """Add the time since the last event to what each queued job waits for."""
        lasted_s = now - self._last[0]
        if not 0.0 < lasted_s < inf or not self._says_why or not (asked := self._times.widest):
            return

        def would_fit(number: int) -> bool:
            spec = self._jobs[number].spec
            return any(fits(site, spec, machine) for machine in site.free_since)

        self._times.pass_time(lasted_s, _most_left(site, asked), would_fit)

    def as_rows(self) -> Rows:
        """Return the rows of the table, which can be read repeatedly; after the run."""
        return Rows(JOBS, self.rows)

    def rows(self) -> Iterator[dict[str, Any]]:
        """Yield a row per job, in the order of submission: scalars by column, None if unknown."""
        for number, job in self._jobs.items():
            spec, waited_s = job.spec, self._times.waited_s[number]
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


def _most_left(site: Site, enough: int) -> int:
    """Return the maximal CPUs left on a free machine; stop looking at `enough`."""
    most = 0
    for machine in site.free_since:
        most = max(most, site.cpus_left(machine))
        if most >= enough:
            break
    return most


# -- waits by length -------------------------------------------------------------------------------
# Waits by true run time: for reports after a run; policies do not see them.


def waits_by_length(waits_s: Floats, run_s: Floats, short_below_s: float) -> dict[str, Any]:
    """Return ``wait_s.by_length`` of a report.

    Args:
        waits_s: (jobs,) seconds from submission to start; inf: never started, nan: not submitted.
        run_s: (jobs,) true run times, seconds.
        short_below_s: jobs that run strictly less are short.

    Returns:
        A `summary` of ``short`` and of ``long``; jobs that never started are counted as censored.
    """
    short = run_s < short_below_s
    parts = {}
    for name, mask in (("short", short), ("long", ~short)):
        waits = Distribution(exact=True)
        waits.extend(waits_s[mask & np.isfinite(waits_s)])
        parts[name] = summary([waits], int((mask & np.isinf(waits_s)).sum()))
    return parts
