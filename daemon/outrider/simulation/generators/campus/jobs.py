"""Jobs of a generated campus: users submit batches; bad jobs never end until killed."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider.simulation.generators.campus.options import JobCounts, Streams

# -- batches ---------------------------------------------------------------------------------------
# Batches: jobs that one user submits together.

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]
SIZE_MEDIAN: Final = 22.0
SIZE_SPREAD: Final = 1.40
LARGEST: Final = 700
SMALLEST_LARGEST: Final = 20
SPREAD_MEDIAN_S: Final = 900.0
SPREAD_SPREAD: Final = 1.2
LONGEST_SPREAD_S: Final = 8 * 3600.0
WEEKEND: Final = 0.40
HOUR_PROFILE: Final = np.array(
    (
        2.5, 2.5, 2.5, 2.5, 2.6, 3.0, 3.3, 3.8, 4.4, 5.0, 5.5, 5.8,
        6.2, 6.3, 6.2, 6.0, 5.7, 5.2, 4.8, 4.0, 3.6, 3.0, 2.9, 2.7,
    )
)  # fmt: skip
"""Batches by the hour of the day at which they begin, per cent."""
STORM_FROM_S: Final = 9 * 3600.0
STORM_UNTIL_S: Final = 21 * 3600.0


class Batches(NamedTuple):
    """Batches of jobs, with `size` by batch; `batch` number, `user` and `submit_s` by job."""

    size: NDArray[np.int64]
    batch: NDArray[np.int64]
    user: Ints
    submit_s: Floats


def draw_batches(
    jobs: int, users: Ints, weight: Floats, size_ratio: float, day_of_week: int, span_s: float,
    rng: np.random.Generator,
) -> Batches:  # fmt: skip
    """Draw batches that sum to exactly `jobs`; the last one is truncated."""
    largest = max(SMALLEST_LARGEST, round(LARGEST * size_ratio))
    size = _sizes(jobs, largest, rng)
    begin_s = _beginnings(len(size), day_of_week, span_s, rng)
    spread_s = SPREAD_MEDIAN_S * np.exp(SPREAD_SPREAD * rng.standard_normal(len(size)))
    spread_s = np.minimum(np.minimum(spread_s, LONGEST_SPREAD_S), span_s - begin_s)
    owner = rng.choice(users, len(size), p=weight / weight.sum())
    batch = np.repeat(np.arange(len(size)), size)
    submit_s = np.round(begin_s[batch] + spread_s[batch] * rng.random(jobs), 1)
    return Batches(size, batch, owner[batch].astype(np.int32), np.minimum(submit_s, span_s))


def _sizes(jobs: int, largest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    drawn: list[NDArray[np.int64]] = []
    missing = jobs
    while missing > 0:
        drawn_size = SIZE_MEDIAN * np.exp(SIZE_SPREAD * rng.standard_normal(1_024))
        size = np.clip(np.rint(drawn_size), 1, largest).astype(np.int64)
        enough = int(np.searchsorted(np.cumsum(size), missing)) + 1
        size = size[:enough]
        drawn.append(size)
        missing -= int(size.sum())
    sizes = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
    if missing < 0:
        sizes[-1] += missing
    return sizes


def _beginnings(count: int, day_of_week: int, span_s: float, rng: np.random.Generator) -> Floats:
    """Draw begin times (count,): an hour by day and week profiles, then uniform within it."""
    hours = np.arange(-int(-span_s // 3600))
    weekday = (hours // 24 + day_of_week) % 7
    weight = HOUR_PROFILE[hours % 24] * np.where(weekday >= 5, WEEKEND, 1.0)
    hour = rng.choice(hours, count, p=weight / weight.sum())
    return np.minimum((hour + rng.random(count)) * 3600.0, span_s)


def draw_storm(count: int, day: int, span_s: float, rng: np.random.Generator) -> Floats:
    """Draw submission times (count,), uniform over a working day, cut at the trace's end."""
    from_s = min(day * 86_400 + STORM_FROM_S, span_s)
    until_s = min(day * 86_400 + STORM_UNTIL_S, span_s)
    return np.round(from_s + (until_s - from_s) * rng.random(count), 1)


# -- jobs ------------------------------------------------------------------------------------------

BROKEN_BATCH_SHARE: Final = 0.70
"""Share of the bad jobs in batches of bad jobs only; the rest are in mixed batches."""
FLAWED_SHARE: Final = 0.28
"""Share of bad jobs in a mixed batch."""
RUN_MEDIAN_S: Final = 73.0 * 60
RUN_SPREAD_BETWEEN: Final = 0.47
RUN_SPREAD_WITHIN: Final = 0.34
LONGEST_RUN_S: Final = 16 * 3600.0
STORM_RUN_MEDIAN_S: Final = 50.0
STORM_RUN_SPREAD: Final = 0.8
SHORTEST_RUN_S: Final = 10.0
LAG_MEDIAN_S: Final = 0.79 * 3600
LAG_SPREAD: Final = 2.7
LONGEST_LAG_S: Final = 600 * 3600.0
NOTICED_JOB_HOURS: Final = 6_000.0
NOTICED_SPREAD: Final = 1.8
MAX_JOB_HOURS: Final = 7_500.0


class Jobs(NamedTuple):
    """Columns (jobs,) of jobs by submission; nan for never."""

    submit_s: Floats
    run_s: Floats
    kill_s: Floats
    user: Ints


# -- users -----------------------------------------------------------------------------------------
# Users: careful ones, careless ones and the one who submits the storm.


class Users(NamedTuple):
    """Users of a generated campus, by number.

    Attributes:
        names: (users,) names.
        vo: (users,) VO number.
        vo_names: (VOs,) names.
        careful, careless: numbers of users who submit mixed batches, and those of bad jobs only.
        careful_weight, careless_weight: relative frequency of each one's submissions.
        stormer: number of the user who submits the storm.
    """

    names: list[str]
    vo: Ints
    vo_names: list[str]
    careful: Ints
    careful_weight: Floats
    careless: Ints
    careless_weight: Floats
    stormer: int


def draw_jobs(
    counts: JobCounts, users: Users, size_ratio: float, day_of_week: int, span_s: float,
    storm_day: int | None, streams: Streams,
) -> Jobs:  # fmt: skip
    """Draw the jobs of a campus.

    Args:
        counts: jobs of each sort; met exactly.
        users: the submitters.
        size_ratio: machines relative to the paper's; scales the largest batch and the delay until
            batch is noticed.
        day_of_week: weekday of day 0, Monday is 0.
        span_s: length of the trace, seconds; no submission or kill is later.
        storm_day: day number of the storm, None if it is not in the trace.
        streams: the generators to draw from.
    """
    broken = round(BROKEN_BATCH_SHARE * counts.bad)
    flawed = min(counts.bad - broken, int(FLAWED_SHARE / (1 - FLAWED_SHARE) * counts.ordinary))
    broken = counts.bad - flawed
    mixed = draw_batches(
        counts.ordinary + flawed, users.careful, users.careful_weight, size_ratio,
        day_of_week, span_s, streams.batches,
    )  # fmt: skip
    broken_only = draw_batches(
        broken, users.careless, users.careless_weight, size_ratio,
        day_of_week, span_s, streams.broken_batches,
    )  # fmt: skip
    is_bad = _choose_bad_jobs(mixed, flawed, streams.spoiling)
    run_s = _run_times(mixed, streams.run_times)
    run_s[is_bad] = np.nan
    parts = [
        Jobs(
            mixed.submit_s, run_s,
            _kills(mixed, is_bad, size_ratio, span_s, streams.kills), mixed.user,
        ),
        _broken_jobs(broken_only, size_ratio, span_s, streams.broken_kills),
    ]  # fmt: skip
    if storm_day is not None:
        parts.append(_storm(counts.storm, users.stormer, storm_day, span_s, streams.storm))
    columns = [np.concatenate(column) for column in zip(*parts, strict=True)]
    order = np.argsort(columns[0], kind="stable")
    return Jobs(*(column[order] for column in columns))


def _choose_bad_jobs(batches: Batches, bad: int, rng: np.random.Generator) -> NDArray[np.bool_]:
    """Return the mask (jobs,) of `bad` jobs, drawn from random batches with `FLAWED_SHARE`."""
    order = rng.permutation(len(batches.size))
    jobs_until = np.cumsum(batches.size[order])
    needed = int(np.searchsorted(jobs_until, bad / FLAWED_SHARE)) + 1
    chosen = np.zeros(len(batches.size), dtype=bool)
    chosen[order[:needed]] = bad > 0
    candidates = np.flatnonzero(chosen[batches.batch])
    is_bad = np.zeros(len(batches.batch), dtype=bool)
    is_bad[rng.choice(candidates, bad, replace=False)] = True
    return is_bad


def _run_times(batches: Batches, rng: np.random.Generator) -> Floats:
    """Draw run times (jobs,), seconds: log-normal about the median of the job's batch."""
    median = RUN_SPREAD_BETWEEN * rng.standard_normal(len(batches.size))
    own = RUN_SPREAD_WITHIN * rng.standard_normal(len(batches.batch))
    run_s = RUN_MEDIAN_S * np.exp(median[batches.batch] + own)
    return _in_bounds(run_s)


def _kills(
    batches: Batches, is_bad: NDArray[np.bool_], size_ratio: float, span_s: float,
    rng: np.random.Generator,
) -> Floats:  # fmt: skip
    """Draw kill times (jobs,): all bad jobs of a batch together, after the last submission.

    The lag is log-normal with a heavy tail. A batch that keeps many machines busy is noticed
    after about `NOTICED_JOB_HOURS`, at most `MAX_JOB_HOURS`, both scaled with the square root of
    the pool: then pools of 60 to 3,000 machines waste about the same per machine. No kill is
    later than the end of the trace.
    """
    bad = np.bincount(batches.batch, is_bad, minlength=len(batches.size))
    last = np.zeros(len(batches.size))
    np.maximum.at(last, batches.batch[is_bad], batches.submit_s[is_bad])
    normal = rng.standard_normal((2, len(batches.size)))
    lag_s = LAG_MEDIAN_S * np.exp(LAG_SPREAD * normal[0])
    job_hours = np.minimum(NOTICED_JOB_HOURS * np.exp(NOTICED_SPREAD * normal[1]), MAX_JOB_HOURS)
    noticed_s = 3600 * size_ratio**0.5 * job_hours / np.maximum(bad, 1)
    lag_s = np.minimum(np.minimum(lag_s, noticed_s), LONGEST_LAG_S)
    kill_s = np.round(np.minimum(last + lag_s, span_s), 1)
    return np.where(is_bad, kill_s[batches.batch], np.nan)


def _broken_jobs(
    batches: Batches, size_ratio: float, span_s: float, rng: np.random.Generator
) -> Jobs:
    is_bad = np.ones(len(batches.batch), dtype=bool)
    never = np.full(len(batches.batch), np.nan)
    kill_s = _kills(batches, is_bad, size_ratio, span_s, rng)
    return Jobs(batches.submit_s, never, kill_s, batches.user)


def _storm(count: int, user: int, day: int, span_s: float, rng: np.random.Generator) -> Jobs:
    """Draw the storm: one user's many jobs of about a minute, on one working day."""
    submit_s = draw_storm(count, day, span_s, rng)
    run_s = _in_bounds(STORM_RUN_MEDIAN_S * np.exp(STORM_RUN_SPREAD * rng.standard_normal(count)))
    never = np.full(count, np.nan)
    return Jobs(submit_s, run_s, never, np.full(count, user, dtype=np.int32))


def _in_bounds(run_s: Floats) -> Floats:
    bounded: Floats = np.minimum(np.maximum(run_s, SHORTEST_RUN_S), LONGEST_RUN_S)
    return np.round(bounded, 1)


USERS: Final = 60
MIN_USERS: Final = 6
CARELESS_SHARE: Final = 0.30
ZIPF: Final = 1.5
VOS: Final = 4


def build_users(size_ratio: float, rng: np.random.Generator) -> Users:
    """Draw the users of a pool with `size_ratio` times the paper's machines.

    Their number grows with the square root of the pool. Numbers are shuffled, so that a name
    reveals nothing about how its user submits. Careless users submit equally often, careful ones by
    Zipf's law: a few submit most of the jobs.
    """
    count = max(MIN_USERS, round(USERS * size_ratio**0.5))
    shuffled = rng.permutation(count).astype(np.int32)
    careless = max(1, round(CARELESS_SHARE * count))
    careful = shuffled[1 + careless :]
    digits = max(2, len(str(count - 1)))
    return Users(
        names=[f"u{number:0{digits}d}" for number in range(count)],
        vo=(np.arange(count) % VOS).astype(np.int32),
        vo_names=[f"vo{number}" for number in range(VOS)],
        careful=careful,
        careful_weight=np.arange(1.0, len(careful) + 1) ** -ZIPF,
        careless=shuffled[1 : 1 + careless],
        careless_weight=np.ones(careless),
        stormer=int(shuffled[0]),
    )
