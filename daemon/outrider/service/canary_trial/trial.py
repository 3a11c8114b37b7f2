"""Canary trial by days: the days on which the policy acts are drawn in advance. Pure code.

On days drawn at random a policy acts on all jobs that it may act on, on the other days on none. The
same weekday of two successive weeks is a pair: one day acts, the other is its control. So weekly
patterns of owners and users affect both sides equally (a paired, randomised design: Box, Hunter and
Hunter, *Statistics for Experimenters*, ch. 3).
"""

import datetime as dt
import random
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import pairwise
from math import exp, hypot, log, sqrt
from typing import Any, Final, NamedTuple, Protocol

import msgspec

from outrider.model.jobs import RUNNING, SUSPENDED_STATE, Job
from outrider.model.student import student_quantile
from outrider.service.shapes.values import Compared, TrialOutcome

_WEEK: Final = 7
FORTNIGHT: Final = 2 * _WEEK
"""Length of a trial is a multiple of it, in days: each fortnight holds seven pairs."""
RUNS_OUT_S: Final = 86_400.0
"""Seconds after the last day without acting, until most runs that began in it have ended."""


def draw_days(seed: int, days: int) -> tuple[bool, ...]:
    """Draw the acting days: (days,) one of each pair, three or four of each week.

    Args:
        seed: of the draw.
        days: a multiple of 14.

    >>> sum(draw_days(seed=5, days=28))
    14
    """
    rng = random.Random(seed)
    acts: list[bool] = []
    for _ in range(days // FORTNIGHT):
        chosen = set(rng.sample(range(_WEEK), rng.choice((_WEEK // 2, _WEEK // 2 + 1))))
        first = [day in chosen for day in range(_WEEK)]
        acts += [*first, *(not one for one in first)]
    return tuple(acts)


def pairs_of(days: int) -> list[tuple[int, int]]:
    """Return the numbers of the two days of each pair, the earlier one first."""
    return [
        (begin + day, begin + day + _WEEK)
        for begin in range(0, days, FORTNIGHT)
        for day in range(_WEEK)
    ]


def midnights(after_s: float, days: int, zone: dt.tzinfo) -> tuple[float, ...]:
    """Return (days + 1,) Unix seconds of the next midnights after a moment, by a wall clock."""
    first = dt.datetime.fromtimestamp(after_s, zone).date() + dt.timedelta(days=1)
    return tuple(
        dt.datetime.combine(first + dt.timedelta(days=day), dt.time(), zone).timestamp()
        for day in range(days + 1)
    )


class Trial(msgspec.Struct, frozen=True, kw_only=True):
    """Registration of a trial: made before the first day, and not changed from then on.

    Attributes:
        registered_s: when, by the site's clock (Unix seconds, as all times here).
        policy: the acting policy.
        settings: that policy's.
        seed: of the draw of the days.
        midnights_s: (days + 1,) when each day begins, and the last one ends.
        acts: (days,) whether the policy acts on it.
        washout_s: after a change from acting to not acting or back, waits that begin within so
            many seconds count for neither.
        measures: names of the compared measures.
        stated: by measure, what the twin stated for this policy in advance; empty: nothing.
        stated_as: ``next``: a forecast; ``past``: an estimate for the past; empty: nothing.
        terms: digest of all in the configuration that must stay the same.
    """

    registered_s: float
    policy: str
    settings: dict[str, Any]
    seed: int
    midnights_s: tuple[float, ...]
    acts: tuple[bool, ...]
    washout_s: float
    measures: tuple[str, ...]
    stated: dict[str, dict[str, float]] = {}
    stated_as: str = ""
    terms: str = ""

    @property
    def days(self) -> int:
        """Number of days of the trial."""
        return len(self.acts)

    @property
    def ends_s(self) -> float:
        """Time at which the outcome is computed: a day after the last day."""
        return self.midnights_s[-1] + RUNS_OUT_S

    def day_at(self, time_s: float) -> int | None:
        """Return the number of the day; None before the first and after the last."""
        day = bisect_right(self.midnights_s, time_s) - 1
        return day if 0 <= day < self.days else None

    def acts_at(self, time_s: float) -> bool:
        """Return whether the policy acts at a moment."""
        day = self.day_at(time_s)
        return day is not None and self.acts[day]

    def counts_for(self, time_s: float) -> int | None:
        """Return the day for which a wait that begins now counts; None: for none, or washed out."""
        day = self.day_at(time_s)
        if day is None:
            return None
        acted_before = self.acts[day - 1] if day else False
        changed = self.acts[day] != acted_before
        if changed and time_s < self.midnights_s[day] + self.washout_s:
            return None
        return day

    def next_change_s(self, time_s: float) -> float | None:
        """Return when acting next begins or ends; None if it does not any more."""
        states = [False, *self.acts, False]
        changes = (
            midnight_s
            for midnight_s, (before, after) in zip(self.midnights_s, pairwise(states), strict=True)
            if before != after
        )
        return next((change_s for change_s in changes if change_s > time_s), None)


# -- trial tally -----------------------------------------------------------------------------------
# Results of a trial by day: sums by the day in which a wait began. Pure code.

OVERHEAD_CAP_S: Final = 86_400.0
"""Maximal overhead counted per job (a day, as in the twin): no single job makes the mean."""


class DaySums(msgspec.Struct, array_like=True):
    """Sums of one day of a trial.

    Attributes:
        goodput_s: CPU-seconds of its runs that completed their job.
        badput_s: CPU-seconds of its wasted runs.
        energy_j: joules of both; nan where watts are unknown.
        completed, evictions: numbers of both kinds.
        overhead_s: overheads of the jobs submitted in it that completed, each up to a day.
        overheads: number of those jobs.
    """

    goodput_s: float = 0.0
    badput_s: float = 0.0
    energy_j: float = 0.0
    completed: int = 0
    evictions: int = 0
    overhead_s: float = 0.0
    overheads: int = 0


class TrialTally:
    """Counts each run for the day in which its job began to wait for it.

    That is the day of its submission, or of the eviction before. By the day of the start, jobs
    deferred on an acting day and released at midnight would count for the other side, and acting
    would look better than it is. Overheads count for the day of the submission.

    Args:
        trial: the registered trial, with its days.

    Attributes:
        days: (days,) their sums.
    """

    def __init__(self, trial: Trial) -> None:
        self.trial = trial
        self.days = [DaySums() for _ in trial.acts]
        self._evicted_s: dict[int, float] = {}
        """Time of the last eviction by number of the job, for as long as the job exists."""
        self._removed: int | None = None

    def run_ended(
        self, job: Job, cpu_s: float, joules: float, time_s: float, completes: bool
    ) -> None:  # fmt: skip
        """Count a run that ended.

        Args:
            job: whose.
            cpu_s: CPU-seconds of work.
            joules: that it took; nan where the watts are unknown.
            time_s: when it ended.
            completes: whether its job is done; if not, the run was wasted.
        """
        since_s = self._evicted_s.pop(job.number, None)
        if since_s is None and job.runs <= 1:  # else an eviction came before the trial
            since_s = _waits_since_s(job)
        if not completes and job.number != self._removed:
            self._evicted_s[job.number] = time_s
        day = None if since_s is None else self.trial.counts_for(since_s)
        if day is None:
            return
        sums = self.days[day]
        sums.energy_j += joules
        if completes:
            sums.goodput_s += cpu_s
            sums.completed += 1
        else:
            sums.badput_s += cpu_s
            sums.evictions += 1

    def job_removed(self, job: Job) -> None:
        """Note that a job leaves without completing; if it runs, the end of its run comes next."""
        if job.state in (RUNNING, SUSPENDED_STATE):
            self._removed = job.number
        else:
            self._evicted_s.pop(job.number, None)

    def job_completed(self, submit_s: float, overhead_s: float) -> None:
        """Count the overhead of a completed job, beyond its last run."""
        if (day := self.trial.counts_for(submit_s)) is None:
            return
        sums = self.days[day]
        sums.overhead_s += min(max(overhead_s, 0.0), OVERHEAD_CAP_S)
        sums.overheads += 1

    def save(self) -> dict[str, Any]:
        """Return the state as plain data."""
        days = msgspec.to_builtins(self.days)
        evicted = list(self._evicted_s.items())
        return {"registered_s": self.trial.registered_s, "days": days, "evicted": evicted}

    def restore(self, saved: dict[str, Any] | None) -> None:
        """Restore the state that `save` returned, if that was of the same trial."""
        if saved is None or saved["registered_s"] != self.trial.registered_s:
            return
        self.days = [msgspec.convert(day, DaySums, strict=False) for day in saved["days"]]
        self._evicted_s = dict(saved["evicted"])


def _waits_since_s(job: Job) -> float:
    """Return when a job began to wait for its first run; its start if it has no submission."""
    if job.submit_s is None:
        return job.start_s
    eligible_s = job.spec.eligible_s
    return job.submit_s if eligible_s is None else max(job.submit_s, eligible_s)


# -- trial outcome ---------------------------------------------------------------------------------
# Outcome of a trial: acting over not acting, with intervals from its pairs of days.
#
# A ratio is that of the sums over all acting days and over all others, which is what a twin states,
# too. Its interval is a jackknife over pairs on the logarithm, with Student's t (Efron, Tibshirani:
# *An Introduction to the Bootstrap*, ch. 11): the ratio is computed without each pair in turn, and
# the spread of these ratios shows how much depends on single days. A mean over the logarithms of
# single pairs would weigh a quiet Sunday as much as a full Tuesday. Pure code.

LEVEL: Final = 0.9
MIN_PAIRS: Final = 5
"""Minimal number of pairs; with fewer, Student's t and the jackknife are too coarse."""


class Measure(NamedTuple):
    """A figure of some days that acting and control are compared by.

    Attributes:
        name: as in `outrider.twin.measures`, where the twin states the same of whole windows.
        of, per: the figure is the sum of one over that of the other.
        label: in words.
    """

    name: str
    of: Callable[[DaySums], float]
    per: Callable[[DaySums], float]
    label: str


MEASURES: Final = (
    Measure("energy_ratio", lambda d: d.energy_j, lambda d: d.goodput_s, "energy per goodput"),
    Measure("badput_ratio", lambda d: d.badput_s, lambda d: d.goodput_s, "badput per goodput"),
    Measure(
        "evictions_ratio", lambda d: d.evictions, lambda d: d.completed,
        "evictions per completed job",
    ),
    Measure(
        "overhead_capped_mean_ratio", lambda d: d.overhead_s, lambda d: d.overheads,
        "mean overhead, each up to a day",
    ),
)  # fmt: skip


def outcome_of(trial: Trial, days: Sequence[DaySums]) -> TrialOutcome:
    """Return the outcome of a trial; pairs with a day without completed jobs are left out.

    Args:
        trial: as registered.
        days: (days,) their sums.
    """
    pairs = [
        (days[a], days[b]) if trial.acts[a] else (days[b], days[a])
        for a, b in pairs_of(trial.days)
        if days[a].completed and days[b].completed
    ]
    found = {measure.name: _compared(measure, pairs, trial) for measure in MEASURES}
    short = "" if len(pairs) >= MIN_PAIRS else f"too short to say: {len(pairs)} pairs of days"
    return TrialOutcome(len(pairs), found, short)


def _compared(measure: Measure, pairs: Sequence[tuple[DaySums, DaySums]], trial: Trial) -> Compared:
    acting = _figure(measure, [pair[0] for pair in pairs])
    control = _figure(measure, [pair[1] for pair in pairs])
    stated = trial.stated.get(measure.name)
    interval = None if len(pairs) < MIN_PAIRS else _interval(measure, pairs)
    if interval is None:
        return Compared(None, None, None, acting, control, stated)
    estimate, low, high = interval
    if stated is None:
        return Compared(estimate, low, high, acting, control)
    within = stated["low"] <= estimate <= stated["high"]
    agrees = _agree((estimate, low, high), (stated["estimate"], stated["low"], stated["high"]))
    return Compared(estimate, low, high, acting, control, stated, within, agrees)


def _agree(a: tuple[float, float, float], b: tuple[float, float, float]) -> bool:
    """Return whether two independent estimates differ by no more than their intervals allow.

    Args:
        a: estimate, low and high of the one.
        b: those of the other.
    """
    less, more = sorted((a, b))
    half = hypot(log(less[2] / less[0]), log(more[0] / more[1]))
    return log(more[0] / less[0]) <= half


def _interval(
    measure: Measure, pairs: Sequence[tuple[DaySums, DaySums]]
) -> tuple[float, float, float] | None:
    """Return estimate, low and high; None where a figure is 0 or not known."""
    whole = _log_ratio(measure, pairs)
    n = len(pairs)
    without = [_log_ratio(measure, [*pairs[:k], *pairs[k + 1 :]]) for k in range(n)]
    known = [value for value in without if value is not None]
    if whole is None or len(known) < n:
        return None
    centre = sum(known) / n
    error = sqrt((n - 1) / n * sum((value - centre) ** 2 for value in known))
    half = student_quantile((1.0 + LEVEL) / 2.0, n - 1) * error
    return exp(whole), exp(whole - half), exp(whole + half)


def _log_ratio(measure: Measure, pairs: Sequence[tuple[DaySums, DaySums]]) -> float | None:
    acting = _figure(measure, [pair[0] for pair in pairs])
    control = _figure(measure, [pair[1] for pair in pairs])
    if not (acting and control):
        return None
    return log(acting / control)


def _figure(measure: Measure, days: Sequence[DaySums]) -> float | None:
    """Return the figure of some days together; None where it is not known."""
    per = sum(measure.per(day) for day in days)
    value = sum(measure.of(day) for day in days) / per if per else None
    return value if value == value else None  # nan: watts are unknown


# -- followed --------------------------------------------------------------------------------------
# The canary trial that a core follows and counts.


class ActsByTrial(Protocol):
    """Decision log that acts on the days of a trial."""

    trial: Trial | None


class CountsForTrial(Protocol):
    """Accounting that counts the runs of a trial."""

    tally: TrialTally | None


class FollowedTrial:
    """The trial that decisions and runs of a core belong to, if any.

    Args:
        decision_log: acts on the days of the trial.
        accounting: counts the runs of the trial.
    """

    def __init__(self, decision_log: ActsByTrial, accounting: CountsForTrial) -> None:
        self._decision_log = decision_log
        self._accounting = accounting

    @property
    def trial(self) -> Trial | None:
        """The trial; None: there is none."""
        return self._decision_log.trial

    @property
    def days(self) -> Sequence[DaySums] | None:
        """The sums of the trial's days so far; None: there is no trial."""
        tally = self._accounting.tally
        return None if tally is None else tally.days

    def follow(self, trial: Trial | None) -> None:
        """Follow a trial from now on; the counts of one that is already followed continue."""
        tally, self._decision_log.trial = self._accounting.tally, trial
        if trial is None:
            self._accounting.tally = None
        elif tally is None or tally.trial != trial:
            self._accounting.tally = TrialTally(trial)

    def acts_at(self, time_s: float) -> bool:
        """Return whether the trial acts at a time."""
        return self.trial is not None and self.trial.acts_at(time_s)

    def save(self) -> dict[str, Any] | None:
        """Return the counts as plain data; None: there is no trial."""
        tally = self._accounting.tally
        return None if tally is None else tally.save()

    def restore(self, saved: dict[str, Any] | None) -> None:
        """Restore what `save` returned, if it was of the same trial."""
        if self._accounting.tally is not None:
            self._accounting.tally.restore(saved)
