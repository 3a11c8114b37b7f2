"""The grid made of a campus: for policies that preempt, shrink and resume, as no campus can."""

from typing import Final

import numpy as np

from outrider.formats.campus.campus import Campus
from outrider.formats.workload import BATCH, INTERACTIVE, Workload
from outrider.model.machines import MachineSpec

_NEVER: Final = float("nan")
_REQUESTED_CPUS: Final = (1, 2, 3, 1, 2)
_ESTIMATES_S: Final = (900.0, 3600.0, 14_400.0, _NEVER)
_CLASSES: Final = (BATCH, BATCH, INTERACTIVE)


def as_grid(campus: Campus) -> Workload:
    """The jobs of a campus that complete; each cluster becomes one machine with a CPU per computer.

    A grid has no owners, no reboots and no kills. A job's request, estimate and class follow from
    its number only, and so reveal nothing of the future: two campuses that are equal until a fork
    become two grids that are.
    """
    ends = np.flatnonzero(~np.isnan(campus.run_s))
    numbers: list[int] = ends.tolist()
    rooms: list[int] = campus.machine_cluster.tolist()
    first = [rooms.index(room) for room in range(len(campus.clusters))]
    watts: list[float] = campus.active_w[first].tolist()
    return Workload(
        name=f"grid of {campus.name}",
        job_names=[campus.job_names[n] for n in numbers],
        submit_s=campus.submit_s[ends],
        run_s=campus.run_s[ends],
        cpus=np.array([_REQUESTED_CPUS[n % len(_REQUESTED_CPUS)] for n in numbers]),
        requested_s=np.full(len(ends), _NEVER),
        wait_s=np.full(len(ends), _NEVER),
        estimate_s=np.array([_ESTIMATES_S[n % len(_ESTIMATES_S)] for n in numbers]),
        user=[campus.user_names[campus.user[n]] for n in numbers],
        vo=[campus.vo_names[campus.vo[n]] for n in numbers],
        job_class=[_CLASSES[n % len(_CLASSES)] for n in numbers],
        machine_names=[campus.machine_names[machine] for machine in first],
        machines=[
            MachineSpec(cluster=spec.name, cpus=rooms.count(room), active_w=watts[room])
            for room, spec in enumerate(campus.clusters)
        ],
        start=campus.start,
    )
