"""Generators of workloads of grids: those of Perez et al. and of Vengerov."""

from collections.abc import Mapping
from math import log
from typing import Final, Literal, NamedTuple

import numpy as np

from outrider.formats.job_classes import ByTruth, as_classes
from outrider.formats.workload import (
    BATCH,
    DEFAULT_VO,
    Floats,
    Workload,
    one_cpu_machines,
    one_pool,
)
from outrider.model.errors import ConfigurationError, nearest

# -- draws -----------------------------------------------------------------------------------------
# Random draws for a grid workload: arrivals and run times, each from its own random stream.

Arrivals = Literal["poisson", "uniform"]
Lengths = Literal["exponential", "uniform"]
ARRIVALS: Final[tuple[Arrivals, ...]] = ("poisson", "uniform")
LENGTHS: Final[tuple[Lengths, ...]] = ("exponential", "uniform")


class Streams(NamedTuple):
    """Random generators, one per purpose; append new ones, so that seeds keep their results."""

    arrivals: np.random.Generator
    lengths: np.random.Generator
    vos: np.random.Generator
    cpus: np.random.Generator


def streams_of(seed: int) -> Streams:
    """Return the streams of a seed. Raises `ConfigurationError` if it is below 0."""
    if seed < 0:
        raise ConfigurationError(f"generate grid: seed = {seed}; expected 0 or more")
    children = np.random.SeedSequence(seed).spawn(len(Streams._fields))
    return Streams(*(np.random.default_rng(child) for child in children))


def draw_arrivals(kind: Arrivals, rate_per_s: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw the first `n` arrival times, ascending seconds from 0.

    Args:
        kind: ``poisson``: independent of each other, gaps are exponential. ``uniform``: gaps are
            uniform between 0 and twice their mean.
        rate_per_s: mean arrivals per second.
        n: number of arrivals.
        rng: used for arrivals only.

    Raises:
        ConfigurationError: unknown kind.
    """
    _known("arrivals", kind, ARRIVALS)
    mean_s = 1.0 / rate_per_s
    gaps = rng.exponential(mean_s, n) if kind == "poisson" else rng.uniform(0.0, 2.0 * mean_s, n)
    times: Floats = np.cumsum(gaps)
    return times


def draw_lengths(kind: Lengths, mean_s: float, n: int, rng: np.random.Generator) -> Floats:
    """Draw the run times of `n` jobs, seconds above 0.

    Args:
        kind: ``exponential``, or ``uniform`` between 0 and twice the mean.
        mean_s: mean run time, seconds.
        n: number of jobs.
        rng: used for run times only.

    Raises:
        ConfigurationError: unknown kind.
    """
    _known("lengths", kind, LENGTHS)
    drawn = rng.exponential(mean_s, n) if kind == "exponential" else rng.uniform(0, 2 * mean_s, n)
    return np.maximum(drawn, np.finfo(np.float64).tiny)


def _known(what: str, kind: str, known: tuple[str, ...]) -> None:
    if kind not in known:
        raise ConfigurationError(f'generate grid: {what} "{kind}"; {nearest(kind, known)}')


# -- perez -----------------------------------------------------------------------------------------
# The synthetic workload of Perez et al. 2008, section V.B and Table I.

FEASIBLE: Final[Mapping[str, float]] = {"1": 0.7, "2": 0.2, "3": 0.05, "4": 0.05}
"""Target shares of section VI.A; also the share of the work that each VO submits."""
INFEASIBLE: Final[Mapping[str, float]] = {"1": 0.4, "2": 0.2, "3": 0.2, "4": 0.2}
"""Target shares of section VI.B, declared over the same jobs."""
PROXY: Final = ByTruth(900.0)
"""Proxy of the paper for user declarations: jobs below 15 minutes are interactive."""
ROWS: Final = (0.2, 0.4, 0.5)
"""Shares of interactive jobs in Table I."""


def mean_run_s(row: float, lengths: Lengths = "exponential") -> float:
    """Return the mean run time, seconds, at which a share `row` of jobs is below 15 minutes.

    Exponential run times: 1/mu of Table I. Uniform ones reach up to twice the mean.

    >>> [round(mean_run_s(row) / 60) for row in ROWS]
    [67, 29, 22]
    """
    if lengths == "uniform":
        return PROXY.below_s / (2 * row)
    return -PROXY.below_s / log(1.0 - row)


def perez_grid(
    row: float,
    seed: int,
    *,
    jobs: int = 6000,
    machines: int = 50,
    load: float = 0.99,
    arrivals: Arrivals = "poisson",
    lengths: Lengths = "exponential",
) -> Workload:
    """Return a workload of Table I: one-CPU jobs of four VOs, arriving at an empty site.

    Interactive jobs are those shorter than 15 minutes. Within each class the *work* of the VOs
    is divided as in `FEASIBLE` (up to one job at each boundary); jobs are assigned at random.

    Args:
        row: share of interactive jobs, 0 to 1; the paper's are `ROWS`.
        seed: below 10,000 to evaluate, from 10,000 to train or tune. Arrivals, run times and VOs
            have their own random streams: for one seed the rows differ in scale only.
        jobs: number of jobs.
        machines: P, one CPU each.
        load: rho = lambda / (P mu), offered work over capacity.
        arrivals: distribution of the gaps between jobs; the paper's is ``poisson``.
        lengths: distribution of the run times; the paper's is ``exponential``.

    Raises:
        ConfigurationError: an argument is out of range.
    """
    _check(row, jobs, machines, load)
    streams = streams_of(seed)
    mean_s = mean_run_s(row, lengths)
    submit_s = draw_arrivals(arrivals, load * machines / mean_s, jobs, streams.arrivals)
    run_s = draw_lengths(lengths, mean_s, jobs, streams.lengths)
    names, specs = one_cpu_machines(machines)
    return Workload(
        name=f"perez-{row:g}-{seed}",
        job_names=[str(number) for number in range(1, jobs + 1)],
        submit_s=submit_s,
        run_s=run_s,
        cpus=np.ones(jobs, dtype=np.int64),
        requested_s=np.full(jobs, np.nan),
        wait_s=np.full(jobs, np.nan),
        estimate_s=run_s.copy(),
        user=[""] * jobs,
        vo=_assign_vos(run_s, streams.vos),
        job_class=as_classes(PROXY.interactive_by_run_time(run_s)),
        class_source=PROXY.source,
        estimate_source="exact",
        machine_names=names,
        machines=specs,
        shares=FEASIBLE,
    )


def _assign_vos(run_s: Floats, rng: np.random.Generator) -> list[str]:
    """Return VO names (jobs,): by class, jobs in random order, cut at the VOs' shares of work."""
    borders = np.cumsum(list(FEASIBLE.values()))[:-1]
    short = run_s < PROXY.below_s
    vo = np.zeros(len(run_s), dtype=np.int64)
    for of_class in (np.flatnonzero(short), np.flatnonzero(~short)):
        order = rng.permutation(of_class)
        work = np.cumsum(run_s[order])
        middle = (work - run_s[order] / 2) / work[-1] if len(work) else work
        vo[order] = np.searchsorted(borders, middle)
    names = list(FEASIBLE)
    return [names[number] for number in vo.tolist()]


def _check(row: float, jobs: int, machines: int, load: float) -> None:
    for name, value, is_right, right in (
        ("row", row, 0.0 < row < 1.0, "between 0 and 1; the paper's are 0.2, 0.4, 0.5"),
        ("jobs", jobs, jobs >= 1, "1 or more"),
        ("machines", machines, machines >= 1, "1 or more"),
        ("load", load, 0.0 < load < 10.0, "above 0 and below 10"),
    ):
        if not is_right:
            raise ConfigurationError(f"generate grid: {name} = {value}; expected {right}")


# -- vengerov --------------------------------------------------------------------------------------
# The workload of Vengerov 2005, section 5: parallel jobs on one machine.

STEPS: Final = ("integer", "continuous")
CPUS: Final = 24
MIN_CPUS: Final = 4
MAX_CPUS: Final = 20
SHORTEST_S: Final = 5
LONGEST_S: Final = 10
Steps = Literal["integer", "continuous"]


def vengerov_grid(
    rate: float, seed: int, *, steps: Steps = "integer", length_s: float = 20_000.0
) -> Workload:
    """Return the base case: one machine of 24 CPUs, Poisson arrivals; a step is one second.

    A job requests 4 to 20 CPUs and runs 5 to 10 steps on them, both uniform. All are of class
    ``batch`` and VO ``all``. At rate .1 the offered work is 9 CPU-seconds per second; the site
    must declare the paper's utility for the class: linear, 0 at twice the ideal run time.

    Args:
        rate: mean arrivals per step; the paper's base case is .1.
        seed: below 10,000 to evaluate, from 10,000 to train or tune. Arrivals, run times and CPUs
            have their own random streams.
        steps: ``integer``: jobs arrive at whole steps and run a whole number of them.
            ``continuous``: both are real numbers. The paper does not specify which.
        length_s: jobs arrive until this step; the paper tests with 20,000.

    Raises:
        ConfigurationError: an argument is out of range.
    """
    if steps not in STEPS:
        raise ConfigurationError(f'generate grid: steps "{steps}"; {nearest(steps, STEPS)}')
    if not 0.0 < rate < 100.0:
        raise ConfigurationError(f"generate grid: rate = {rate}; expected above 0, as 0.1")
    if not 1.0 <= length_s <= 1e8:
        raise ConfigurationError(
            f"generate grid: length = {length_s}; expected steps, from 1 to 1e8"
        )
    streams = streams_of(seed)
    if steps == "integer":
        a_step = streams.arrivals.poisson(rate, int(length_s))
        submit_s = np.repeat(np.arange(int(length_s), dtype=np.float64), a_step)
    else:
        n = streams.arrivals.poisson(rate * length_s)
        submit_s = np.sort(streams.arrivals.uniform(0.0, length_s, n))
    jobs = len(submit_s)
    if steps == "integer":
        run_s = streams.lengths.integers(SHORTEST_S, LONGEST_S + 1, jobs).astype(np.float64)
    else:
        run_s = streams.lengths.uniform(SHORTEST_S, LONGEST_S, jobs)
    names, specs = one_pool(CPUS)
    return Workload(
        name=f"vengerov-{rate:g}-{steps}-{seed}",
        job_names=[str(number) for number in range(1, jobs + 1)],
        submit_s=submit_s,
        run_s=run_s,
        cpus=streams.cpus.integers(MIN_CPUS, MAX_CPUS + 1, jobs),
        requested_s=np.full(jobs, np.nan),
        wait_s=np.full(jobs, np.nan),
        estimate_s=run_s.copy(),
        user=[""] * jobs,
        vo=[DEFAULT_VO] * jobs,
        job_class=[BATCH] * jobs,
        class_source="none",
        estimate_source="exact",
        machine_names=names,
        machines=specs,
    )
