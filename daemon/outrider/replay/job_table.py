"""What befell every job of a replay, and what it waited for: one row a job."""

from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any, Final

from outrider.engine import PolicyRunner
from outrider.engine.scheduling.placement import fits
from outrider.engine.state.site import Site
from outrider.formats.tables import INTEGER, NUMBER, TEXT, Column, Rows, Table
from outrider.model.decisions import DEFER, UNCHOSEN, Decision
from outrider.model.decisions import IMPOSSIBLE as IMPOSSIBLE_JOB
from outrider.model.disciplines import CONSERVATIVE, EASY, EASY_SJBF, FIRST_FIT, STRICT
from outrider.model.events import COMPLETED, JOB_KINDS, REMOVED, SUBMITTED, TICK, Event
from outrider.model.jobs import QUEUED, Job
from outrider.replay.queue_times import (
    BEHIND,
    DEFERRED,
    DELAY,
    IMPOSSIBLE,
    REASONS,
    QueueTimes,
)

_WHY_IT_FITS_AND_WAITS: Final = {
    STRICT: BEHIND, EASY: DELAY, EASY_SJBF: DELAY, CONSERVATIVE: DELAY,
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
        self._times = QueueTimes(len(self._names), DEFERRED)
        self._says_why = False
        self._jobs: dict[int, Job] = {}
        self._ends: dict[int, tuple[float, str]] = {}
        self._last: Event = (_NEVER, TICK, 0, None)

    def decided(self, decision: Decision) -> None:
        """Note what the policy says of a job; called for each of its decisions."""
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
        """Pass events on, one by one; before each the site is as the one before has left it.

        Args:
            events: of the run.
            site: of its engine.
            runners: the first decides; none: nothing says what a job waits for.
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
        """The run is over: who still waits did so until now."""
        self._count_until(end_s, site)
        self._times.settle()

    def _settle(self, site: Site) -> None:
        """Take in what the last event did to its job."""
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
        """Its rows, to be read as often as wanted; after the run."""
        return Rows(JOBS, self.rows)

    def rows(self) -> Iterator[dict[str, Any]]:
        """A row a job, in the order of submission: scalars by column, None where unknown."""
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
    """The most CPUs that a free machine has left; where one has `enough`, that is enough."""
    most = 0
    for machine in site.free_since:
        most = max(most, site.cpus_left(machine))
        if most >= enough:
            break
    return most
