"""Runs that ended in a window: goodput, badput and energy by user, VO, class, machine, job."""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from outrider.engine.state.site import Site
from outrider.model import events as ev
from outrider.model.events import Event
from outrider.model.jobs import RUNNING, SUSPENDED_STATE, Job
from outrider.report.windows import Window

WITHIN_S: Final = 300.0
"""A run that fails within so many seconds of its start counts as a failed start."""
FAILING: Final = frozenset({"failed_start", "held", "killed", "unknown"})
"""Reasons for which a machine may be to blame; owners, reboots, drains and users are not."""
_ENDS: Final = (ev.COMPLETED, ev.EVICTED, ev.REMOVED)
RUN_KINDS: Final = frozenset({ev.STARTED, *_ENDS})
"""Kinds of events that are counted here; others need not be passed."""

JoulesOf = Callable[[Job, float, float], float]
"""Return joules of the present run of a job, from the job, its seconds and the time now."""


@dataclass(slots=True)
class Sums:
    """Sums over runs that ended. Joules are nan where watts are unknown."""

    goodput_s: float = 0.0
    badput_s: float = 0.0
    goodput_j: float = 0.0
    badput_j: float = 0.0
    completed: int = 0
    thrown_away: int = 0
    reasons: Counter[str] = field(default_factory=Counter)

    def add(self, cpu_s: float, joules: float, reason: str | None) -> None:
        """Count a run: wasted for a reason, or completed (None)."""
        if reason is None:
            self.goodput_s += cpu_s
            self.goodput_j += joules
            self.completed += 1
        else:
            self.badput_s += cpu_s
            self.badput_j += joules
            self.thrown_away += 1
            self.reasons[reason] += 1


class Runs:
    """Counter of the runs that end in a window, whenever they began, as the accounting does.

    Args:
        window: which.
        site: of the engine that takes the events.
        joules_of: a run's energy; nan where it is unknown.
        names: of jobs that are there, by number.

    Attributes:
        total: of all.
        by_user, by_vo, by_class: sums by name; by_machine, by_job: by number.
        jobs: name and user of those in `by_job`.
        starts: in the window, by machine number.
        first_tries: by (machine, user): jobs of which it is known whether a start in the window
            failed there within `WITHIN_S`, and in how many it did. A job counts once a machine.
    """

    def __init__(
        self, window: Window, site: Site, joules_of: JoulesOf, names: Mapping[int, str]
    ) -> None:
        self.window = window
        self._joules_of = joules_of
        self._names = names
        self._site = site
        self.total = Sums()
        self.by_user: defaultdict[str, Sums] = defaultdict(Sums)
        self.by_vo: defaultdict[str, Sums] = defaultdict(Sums)
        self.by_class: defaultdict[str, Sums] = defaultdict(Sums)
        self.by_machine: defaultdict[int, Sums] = defaultdict(Sums)
        self.by_job: defaultdict[int, Sums] = defaultdict(Sums)
        self.jobs: dict[int, tuple[str, str]] = {}
        self.starts: Counter[int] = Counter()
        self._tried: dict[tuple[int, int], tuple[str, bool]] = {}

    def take(self, event: Event) -> None:
        """Count an event that the engine has not applied yet."""
        time_s, kind, subject, extra = event
        if max(self._site.now, time_s) not in self.window:  # a late event counts when it arrives
            return
        if kind == ev.STARTED:
            self.starts[extra[0]] += 1
        elif kind in _ENDS:
            job = self._site.jobs.get(subject)
            if job is not None and job.state in (RUNNING, SUSPENDED_STATE):
                self._ended(job, time_s, None if kind == ev.COMPLETED else extra)

    def _ended(self, job: Job, time_s: float, reason: str | None) -> None:
        run_s, spec = job.run_s(time_s), job.spec
        cpu_s = job.run_cpu_s(run_s)
        joules = self._joules_of(job, run_s, max(self._site.now, time_s))
        sums = [
            self.total, self.by_user[spec.user], self.by_vo[spec.vo],
            self.by_class[spec.job_class], self.by_machine[job.machine],
        ]  # fmt: skip
        if reason is not None:
            sums.append(self.by_job[job.number])
            self.jobs[job.number] = self._names[job.number], spec.user
        for each in sums:
            each.add(cpu_s, joules, reason)
        if job.start_s in self.window:
            lasted = reason is None or time_s - job.start_s > WITHIN_S
            if lasted or reason in FAILING:
                self._try(job, failed=not lasted)

    def close(self, now: float) -> None:
        """Count the runs that continue at the end of the window or record as good starts."""
        for job in self._site.jobs.values():
            goes_on = job.state in (RUNNING, SUSPENDED_STATE) and job.start_s in self.window
            if goes_on and now - job.start_s > WITHIN_S:
                self._try(job, failed=False)

    def _try(self, job: Job, *, failed: bool) -> None:
        key = (job.machine, job.number)
        before = key in self._tried and self._tried[key][1]
        self._tried[key] = (job.spec.user, failed or before)

    @property
    def first_tries(self) -> dict[tuple[int, str], tuple[int, int]]:
        """Jobs tried and jobs that failed, by machine and user."""
        found: dict[tuple[int, str], tuple[int, int]] = {}
        for (machine, _), (user, failed) in self._tried.items():
            tried, bad = found.get((machine, user), (0, 0))
            found[machine, user] = tried + 1, bad + failed
        return found
