"""Expected start of a hypothetical extra job of each kind, sent to a site now (for brokers)."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Final, NamedTuple

import numpy as np

from outrider.forecast.expected_starts import drawn_starts
from outrider.forecast.followed_site import FollowedSite
from outrider.forecast.outlook import LONGEST_S, Asked, Outlook
from outrider.forecast.questions import HIGH, LEVELS, MEDIAN
from outrider.forecast.queue_state import NO_ARRIVALS, Floats, Jobs, QueueState
from outrider.forecast.recalibration import as_log, as_seconds
from outrider.forecast.recent_jobs import RecentJob, groups_in
from outrider.forecast.walk import known_features
from outrider.model.jobs import JobSpec
from outrider.model.modes import STRICT, Discipline

MAX_KINDS: Final = 16
"""Number of the most frequent recent kinds; each takes a separate simulation."""
REPLICATES: Final = 60


class Kind(NamedTuple):
    """Kind of jobs: a VO and a class.

    Attributes:
        vo: of these jobs.
        job_class: of these jobs.
        spec: of the middle one of the recent arrivals, by CPUs and then by requested run time.
        n: number of recent arrivals.
    """

    vo: str
    job_class: str
    spec: JobSpec
    n: int


class OneMore(NamedTuple):
    """Forecast for an extra job of a kind.

    Attributes:
        kind: of the job.
        wait_s: (3,) of its wait: low, median and high, an interval of 80 %; None: not known.
        waits_s: (replicates,) waits, each shifted as the median was; empty: not known.
        runs_s: (replicates,) run time in each.
    """

    kind: Kind
    wait_s: Floats | None
    waits_s: Floats
    runs_s: Floats


def kinds_of(recent: Iterable[RecentJob], max_kinds: int = MAX_KINDS) -> list[Kind]:
    """Return the kinds with most recent arrivals, those first.

    Args:
        recent: the jobs that came in the last days.
        max_kinds: maximal number of kinds.
    """
    came: dict[tuple[str, str], list[RecentJob]] = {}
    for one in recent:
        came.setdefault((one.spec.vo, one.spec.job_class), []).append(one)
    counted = Counter({kind: len(jobs) for kind, jobs in came.items()})
    return [
        Kind(*kind, _middle(came[kind]), n)
        for kind, n in sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:max_kinds]
    ]


def one_more(
    site: FollowedSite,
    outlook: Outlook,
    discipline: Discipline,
    rng: np.random.Generator,
    replicates: int = REPLICATES,
) -> Iterator[OneMore]:
    """Yield for each kind the wait of a job that comes now, at the end of the queue.

    Each is simulated alone, as if no other were sent. It is recalibrated by recent errors, as the
    expected starts of jobs at their submission are.

    Args:
        site: followed up to now.
        outlook: of this site, under the same rule; it does not keep these questions.
        discipline: the rule of the batch system.
        rng: for the draws.
        replicates: of each kind.
    """
    state = site.state()
    arrivals = NO_ARRIVALS if discipline == STRICT else site.arrivals()
    closures = site.closure_history()
    for kind in kinds_of(site.recent.jobs):
        if not site.may_run(kind.spec):
            yield _unknown(kind)
            continue
        behind = _joined(state, kind.spec, groups_in(site.run_times, kind.spec))
        last = len(behind.waiting) - 1
        runs_s, starts_s = drawn_starts(
            behind, site.run_times, arrivals, discipline, replicates, rng, last, closures
        )
        waits_s = np.minimum(starts_s[:, 0] - state.now_s, LONGEST_S)
        if np.all(waits_s <= 0.0):
            has_room = site.has_room(kind.spec)
            yield OneMore(kind, np.zeros(3), waits_s, runs_s[:, -1]) if has_room else _unknown(kind)
            continue
        quantiles_s = np.quantile(waits_s, LEVELS)
        known = known_features(behind, site.run_times, np.array([state.now_s]), np.array([last]))
        asked = Asked(-1, state.now_s, True, quantiles_s, known[0], np.full(3, np.nan))
        outlook.predict([asked], state.total_cpus)
        if np.isnan(asked.predicted_s[0]) or np.mean(np.isfinite(starts_s)) < LEVELS[HIGH]:
            yield _unknown(kind)
            continue
        moved = as_log(asked.predicted_s[1:2]) - as_log(quantiles_s[[MEDIAN]])
        yield OneMore(kind, asked.predicted_s, as_seconds(as_log(waits_s) + moved), runs_s[:, -1])


def _unknown(kind: Kind) -> OneMore:
    return OneMore(kind, None, np.empty(0), np.empty(0))


def _middle(jobs: list[RecentJob]) -> JobSpec:
    def size(came: RecentJob) -> tuple[int, float]:
        estimate_s = came.spec.estimate_s
        return came.spec.cpus, -1.0 if estimate_s is None else estimate_s

    return sorted(jobs, key=size)[len(jobs) // 2].spec


def _joined(state: QueueState, spec: JobSpec, groups: list[int]) -> QueueState:
    """Return the state with this job at the end of the queue."""
    waiting = state.waiting
    estimate_s = np.nan if spec.estimate_s is None else spec.estimate_s
    longer = Jobs(
        np.append(waiting.cpus, spec.cpus),
        np.append(waiting.estimate_s, estimate_s),
        np.append(waiting.request_s, estimate_s),
        np.vstack([waiting.groups, np.array([groups], dtype=np.int64)]),
    )
    return replace(state, waiting=longer, lost_s=np.append(state.lost_s, 0.0))
