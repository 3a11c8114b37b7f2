"""The grid of the experiments: nodes of unlike capacity, each with a queue of its own."""

import numpy as np

from outrider.formats.workload import GridRules, SpeedChange, Workload
from outrider.model.machines import MachineSpec

MEAN_RUN_S = 100.0
LOAD_RATIO = 0.8
USERS = 10
CAPACITIES = (1, 10)


def node_grid(seed: int, nodes: int, jobs: int, permuted: bool = False) -> Workload:
    """Poisson arrivals at a load of .8, exponential work, capacities drawn from 1 to 10.

    Args:
        seed: 0 or more; of capacities, arrivals, work, users and the permutation, each from its
            own stream.
        nodes: how many; a node of capacity c does c seconds of work a second, first in first out.
        jobs: how many, of 10 users.
        permuted: half way through the arrivals the nodes swap their capacities at random. Nobody
            is told: schedulers go on knowing the old ones.
    """
    children = np.random.SeedSequence(seed).spawn(5)
    capacity_rng, gap_rng, run_rng, user_rng, swap_rng = map(np.random.default_rng, children)
    capacity = capacity_rng.integers(CAPACITIES[0], CAPACITIES[1] + 1, nodes).astype(float)
    rate_per_s = LOAD_RATIO * capacity.sum() / MEAN_RUN_S
    submit_s = np.cumsum(gap_rng.exponential(1.0 / rate_per_s, jobs))
    unknown = np.full(jobs, np.nan)
    changes: list[SpeedChange] = []
    if permuted:
        swapped = swap_rng.permutation(capacity).tolist()
        half_s = float(submit_s[jobs // 2])
        changes = [SpeedChange(half_s, machine, speed) for machine, speed in enumerate(swapped)]
    return Workload(
        name=f"node grid, seed {seed}",
        job_names=[str(job) for job in range(jobs)],
        submit_s=submit_s,
        run_s=np.maximum(run_rng.exponential(MEAN_RUN_S, jobs), 1e-6),
        cpus=np.ones(jobs, dtype=np.int64),
        requested_s=unknown,
        wait_s=unknown,
        estimate_s=unknown,
        user=[f"user-{user}" for user in user_rng.integers(0, USERS, jobs)],
        vo=["all"] * jobs,
        job_class=["batch"] * jobs,
        class_source="none",
        machine_names=[f"node-{node}" for node in range(nodes)],
        machines=[MachineSpec(cluster="grid", speed=speed) for speed in capacity.tolist()],
        rules=GridRules(node_queues=True),
        speed_changes=changes,
    )
