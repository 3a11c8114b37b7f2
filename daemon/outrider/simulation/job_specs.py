"""What users say of a campus's jobs: one specification for all jobs of which the same is said."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from outrider.formats.campus.campus import Campus
from outrider.model.jobs import JobSpec


def job_specs(campus: Campus) -> tuple[NDArray[np.object_], NDArray[np.int64]]:
    """The distinct specifications, and (jobs,) an index into them. True run times are in none."""
    kinds, job_kind = _kinds(campus)
    specs = np.empty(len(kinds), dtype=object)
    for at, job in enumerate(kinds.tolist()):
        user, vo = campus.user_names[campus.user[job]], campus.vo_names[campus.vo[job]]
        specs[at] = JobSpec(user=user, vo=vo, **dict(_requested(campus, job)))
    return specs, job_kind


def _kinds(campus: Campus) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The first job of each kind, and (jobs,) the kind of each."""
    columns: list[NDArray[Any]] = [campus.user, campus.vo]
    if campus.requests is not None:
        asked = campus.requests
        columns += [asked.cpus, asked.memory_mib, asked.gpus]
    if campus.only is not None:
        columns.append(np.array(campus.only, dtype=object))
    if campus.estimate_s is not None:
        columns.append(campus.estimate_s)
    job_kind = np.zeros(len(campus.job_names), dtype=np.int64)
    for column in columns:
        values, number = np.unique(column, return_inverse=True)
        job_kind = np.unique(job_kind * max(1, len(values)) + number, return_inverse=True)[1]
    first = np.unique(job_kind, return_index=True)[1]
    return first, job_kind


def _requested(campus: Campus, job: int) -> Iterator[tuple[str, Any]]:
    """What a job asks for besides one CPU of any machine."""
    if campus.requests is not None:
        yield "cpus", int(campus.requests.cpus[job])
        yield "resources", campus.requests.requested(job)
    if campus.only is not None:
        yield "eligible", campus.only[job]
    if campus.estimate_s is not None and not np.isnan(campus.estimate_s[job]):
        yield "estimate_s", float(campus.estimate_s[job])
