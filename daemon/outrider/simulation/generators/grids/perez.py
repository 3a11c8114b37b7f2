"""The synthetic workload of Perez et al. 2008, section V.B and Table I."""

from collections.abc import Mapping
from math import log
from typing import Final

import numpy as np

from outrider.formats.job_classes import ByTruth, as_classes
from outrider.formats.workload import Floats, Workload, one_cpu_machines
from outrider.model.errors import ConfigurationError
from outrider.simulation.generators.grids.draws import (
    Arrivals,
    Lengths,
    draw_arrivals,
    draw_lengths,
    streams_of,
)

FEASIBLE: Final[Mapping[str, float]] = {"1": 0.7, "2": 0.2, "3": 0.05, "4": 0.05}
"""Target shares of section VI.A; also the share of the work that each VO submits."""

INFEASIBLE: Final[Mapping[str, float]] = {"1": 0.4, "2": 0.2, "3": 0.2, "4": 0.2}
"""Target shares of section VI.B, declared over the same jobs."""

PROXY: Final = ByTruth(900.0)
"""The paper's proxy for what a user declares: jobs shorter than 15 minutes are interactive."""

ROWS: Final = (0.2, 0.4, 0.5)
"""Shares of interactive jobs in Table I."""


def mean_run_s(row: float, lengths: Lengths = "exponential") -> float:
    """Mean run time, seconds, at which a share `row` of the jobs is shorter than 15 minutes.

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
    """A workload of Table I: one-CPU jobs of four VOs, arriving at an empty site.

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
    """(jobs,) VO names: by class, jobs in random order are cut at the VOs' shares of work."""
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
            raise ConfigurationError(f"generate grid: {name} = {value}; right would be {right}")
