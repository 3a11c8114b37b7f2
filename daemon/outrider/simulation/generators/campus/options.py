"""Options of the campus generator, checked before anything is drawn."""

import datetime as dt
from typing import Annotated, Final, NamedTuple

import msgspec
import numpy as np

from outrider.model.errors import ConfigurationError
from outrider.model.localtime import DAY_S, WEEK_S

YEAR_WEEKS: Final = 365 / 7
PAPER_MACHINES: Final = 1_359
PAPER_CLUSTERS: Final = 37
PAPER_SESSIONS: Final = 1_229_820
PAPER_JOBS: Final = 532_467
PAPER_BAD_JOBS: Final = 131_909
PAPER_STORM_JOBS: Final = 93_000
STORM_DAY: Final = dt.date(2010, 6, 3)
"""Thursday on which one user submitted about 93,000 jobs (section 5)."""

_MAX_DEMAND_SLOTS = 100_000_000


class CampusOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Size and time of a generated campus."""

    weeks: Annotated[
        float, msgspec.Meta(gt=0, le=520, description="length of the trace; a year is 365/7")
    ] = YEAR_WEEKS
    machines: Annotated[
        int, msgspec.Meta(ge=1, le=100_000, description="desktop machines in the pool")
    ] = PAPER_MACHINES
    clusters: Annotated[
        int, msgspec.Meta(ge=1, le=1_000, description="rooms; at most one a machine")
    ] = PAPER_CLUSTERS
    start: Annotated[
        dt.date, msgspec.Meta(description="first day; a day in term makes short traces busier")
    ] = dt.date(2010, 1, 1)
    jobs: Annotated[
        Annotated[int, msgspec.Meta(ge=0, le=20_000_000)] | None,
        msgspec.Meta(description="jobs; default: in proportion to the paper's"),
    ] = None
    bad_jobs: Annotated[
        Annotated[int, msgspec.Meta(ge=0)] | None,
        msgspec.Meta(description="of these, jobs that never end; 0 makes every job good"),
    ] = None

    @property
    def span_s(self) -> float:
        """Length of the trace in seconds, rounded to a tenth."""
        return round(self.weeks * WEEK_S, 1)

    @property
    def days(self) -> int:
        """Number of days that the trace covers at least in part."""
        return max(1, -int(-self.span_s // DAY_S))


def rooms_for(machines: int) -> int:
    """Return a number of rooms in the paper's proportion to machines, at most the paper's."""
    return min(PAPER_CLUSTERS, max(1, round(PAPER_CLUSTERS * machines / PAPER_MACHINES)))


class JobCounts(NamedTuple):
    """Number of jobs of each sort: `ordinary` good ones, `bad` ones and the one-day `storm`."""

    ordinary: int
    bad: int
    storm: int


def job_counts(options: CampusOptions) -> JobCounts:
    """Return the number of jobs of each sort: the paper's, scaled to these machines and weeks.

    The storm of 3 June 2010 belongs to its day: traces without that day have no storm.

    Raises:
        ConfigurationError: more bad jobs than jobs.
    """
    size = options.machines / PAPER_MACHINES
    usual = (PAPER_JOBS - PAPER_STORM_JOBS) * size * options.weeks / YEAR_WEEKS
    end = options.start + dt.timedelta(days=options.days)
    storm = PAPER_STORM_JOBS * size if options.start <= STORM_DAY < end else 0.0
    jobs = round(usual + storm) if options.jobs is None else options.jobs
    storm_ratio = storm / (usual + storm)
    bad_ratio = (1 - storm_ratio) * PAPER_BAD_JOBS / (PAPER_JOBS - PAPER_STORM_JOBS)
    bad = round(jobs * bad_ratio) if options.bad_jobs is None else options.bad_jobs
    if bad > jobs:
        raise ConfigurationError(
            f"generate campus: bad_jobs = {bad} is more than all jobs ({jobs}); "
            f"expected 0 to {jobs}"
        )
    in_storm = min(round(jobs * storm_ratio), jobs - bad)
    return JobCounts(jobs - bad - in_storm, bad, in_storm)


def check(options: CampusOptions) -> None:
    """Check what the ranges of single options cannot express.

    Raises:
        ConfigurationError: more clusters than machines, or a table of demand too large for memory.
    """
    if options.clusters > options.machines:
        raise ConfigurationError(
            f"generate campus: clusters = {options.clusters} is more than "
            f"machines = {options.machines}; each cluster needs a machine"
        )
    slots = options.clusters * options.days * 288
    if slots > _MAX_DEMAND_SLOTS:
        raise ConfigurationError(
            f"generate campus: clusters = {options.clusters} over {options.days} days need "
            f"{slots * 8 / 1e9:.1f} GB; expected clusters x days of at most "
            f"{_MAX_DEMAND_SLOTS // 288}"
        )
    try:
        options.start + dt.timedelta(days=options.days + 1)
    except OverflowError as error:
        raise ConfigurationError(
            f"generate campus: start = {options.start} leaves no calendar for {options.days} days"
        ) from error
    job_counts(options)


# -- random streams --------------------------------------------------------------------------------
# Named random streams of one seed: drawing more from one changes none of the others.


class Streams(NamedTuple):
    """Random generators, one per purpose; append new ones, so that seeds keep their results."""

    rooms: np.random.Generator
    habits: np.random.Generator
    moods: np.random.Generator
    sessions: np.random.Generator
    users: np.random.Generator
    batches: np.random.Generator
    broken_batches: np.random.Generator
    spoiling: np.random.Generator
    run_times: np.random.Generator
    kills: np.random.Generator
    broken_kills: np.random.Generator
    storm: np.random.Generator


def streams_of(seed: int) -> Streams:
    """Return the streams of a seed, spawned from one `numpy.random.SeedSequence`."""
    children = np.random.SeedSequence(seed).spawn(len(Streams._fields))
    return Streams(*(np.random.default_rng(child) for child in children))
