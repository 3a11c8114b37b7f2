"""The workload of Vengerov 2005, section 5: parallel jobs on one machine."""

from typing import Final, Literal

import numpy as np

from outrider.formats.workload import BATCH, DEFAULT_VO, Workload, one_pool
from outrider.model.errors import ConfigurationError, nearest
from outrider.simulation.generators.grids.draws import streams_of

STEPS: Final = ("integer", "continuous")
CPUS: Final = 24
FEWEST_CPUS: Final = 4
MOST_CPUS: Final = 20
SHORTEST_S: Final = 5
LONGEST_S: Final = 10

Steps = Literal["integer", "continuous"]


def vengerov_grid(
    rate: float, seed: int, *, steps: Steps = "integer", length_s: float = 20_000.0
) -> Workload:
    """The base case: one machine of 24 CPUs, Poisson arrivals; one time step is one second.

    A job requests 4 to 20 CPUs and runs 5 to 10 steps on them, both uniform. All are of class
    ``batch`` and VO ``all``. At rate .1 the offered work is 9 CPU-seconds per second; the site
    must declare the paper's utility for the class: linear, 0 at twice the ideal run time.

    Args:
        rate: mean arrivals per step; the paper's base case is .1.
        seed: below 10,000 to evaluate, from 10,000 to train or tune. Arrivals, run times and CPUs
            have their own random streams.
        steps: ``integer``: jobs arrive at whole steps and run a whole number of them.
            ``continuous``: both are real numbers. The paper does not say which.
        length_s: jobs arrive until this step; the paper tests with 20,000.

    Raises:
        ConfigurationError: an argument is out of range.
    """
    if steps not in STEPS:
        raise ConfigurationError(f'generate grid: steps "{steps}"; {nearest(steps, STEPS)}')
    if not 0.0 < rate < 100.0:
        raise ConfigurationError(f"generate grid: rate = {rate}; right would be above 0, as 0.1")
    if not 1.0 <= length_s <= 1e8:
        raise ConfigurationError(
            f"generate grid: length = {length_s}; right would be steps, from 1 to 1e8"
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
        cpus=streams.cpus.integers(FEWEST_CPUS, MOST_CPUS + 1, jobs),
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
