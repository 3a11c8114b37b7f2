"""Selection of jobs by the ``job_spec`` argument of ``htcondor2.Schedd``."""

import re
from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

from outrider_adapters.htcondor.bindings import ClassAdException, ExprTree
from outrider_adapters.mock_condor.ads import at_time, holds
from outrider_adapters.mock_condor.claims import QueuedJob
from outrider_adapters.mock_condor.queue import JobQueue

JobSpec: TypeAlias = str | int | Sequence[str] | ExprTree

_JOB = re.compile(r"\d+\.\d+")
_CLUSTER = re.compile(r"\d+")


class Selection(NamedTuple):
    """The jobs that a spec selects.

    Attributes:
        jobs: jobs in the queue, in the order of the spec's ids or of the queue.
        missing: ids in the spec that are not in the queue.
    """

    jobs: list[QueuedJob]
    missing: list[str]


def select_jobs(queue: JobQueue, spec: JobSpec, now_s: float) -> Selection:
    """Select jobs by a spec.

    Args:
        queue: the jobs.
        spec: ``"cluster.proc"``, ``"cluster"``, a list of these, an int (a cluster) or a constraint
            as text or `ExprTree`.
        now_s: the value of ``time()`` in a constraint.

    Raises:
        TypeError, ValueError: not a valid spec; with the messages of ``htcondor2``.
    """
    if isinstance(spec, int):
        return _of_constraint(queue, f"ClusterId == {spec}", now_s)
    if isinstance(spec, ExprTree):
        return _of_constraint(queue, repr(spec), now_s)
    if isinstance(spec, str):
        if _JOB.fullmatch(spec) or _CLUSTER.fullmatch(spec):
            return _of_ids(queue, [spec])
        return _of_constraint(queue, spec, now_s)
    if not isinstance(spec, list):
        raise TypeError("The job_spec must be list of strings, a string, an int, or an ExprTree.")
    if not all(isinstance(item, str) for item in spec):
        raise TypeError("All elements of the job_spec list must be strings.")
    return _of_ids(queue, spec)


def _of_ids(queue: JobQueue, ids: list[str]) -> Selection:
    jobs: list[QueuedJob] = []
    missing: list[str] = []
    for item in ids:
        if _JOB.fullmatch(item):
            cluster, proc = item.split(".")
            job = queue.jobs.get((int(cluster), int(proc)))
            found = [] if job is None else [job]
            missing += [item] if job is None else []
        elif _CLUSTER.fullmatch(item):
            found = [job for id_, job in queue.jobs.items() if id_[0] == int(item)]
        else:
            raise ValueError(
                "All elements of the job_spec list must be strings of the form clusterID[.procID]"
            )
        jobs += found
    return Selection(jobs, missing)


def _of_constraint(queue: JobQueue, constraint: str, now_s: float) -> Selection:
    try:
        condition = ExprTree(at_time(constraint, now_s))
    except ClassAdException as error:
        raise ValueError(
            "The job_spec string must be a clusterID[.procID] or the string form of an ExprTree."
        ) from error
    return Selection([job for job in queue.jobs.values() if holds(condition, job.ad)], [])
