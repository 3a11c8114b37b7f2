"""Optional columns of a campus: from the tables that were read, and for those that are written.

A column that says nothing is the same as none: it is neither kept nor written.
"""

from collections.abc import Iterable, Sequence
from math import isnan
from typing import Any

import numpy as np

from outrider.formats.campus.amounts import Amounts
from outrider.formats.campus.campus import ONLY_SEPARATOR, Campus, Floats, Ints
from outrider.formats.campus.rows import ESTIMATE, JOB_AMOUNTS, MACHINE_AMOUNTS, ONLY
from outrider.formats.campus.tables import Column, Columns
from outrider.model.clusters import ClusterSpec

Written = tuple[Column, Sequence[Any]]
"""A column, and its values as they are written."""


def amounts_of(columns: Columns, rows_n: int) -> Amounts | None:
    """CPUs, memory and GPUs of machines or jobs; None if nothing is said of them."""
    unsaid = np.full(rows_n, np.nan)
    cpus, memory_mib, gpus = (columns.get(column.name, unsaid) for column in MACHINE_AMOUNTS)
    amounts = Amounts(np.nan_to_num(cpus, nan=1.0).astype(np.int32), memory_mib, gpus)
    return None if amounts.is_plain else amounts


def widest_by_cluster(
    clusters: Sequence[ClusterSpec], machine_cluster: Ints, capacities: Amounts | None
) -> dict[str, int]:
    """Most CPUs of any machine, by cluster; 0 for a cluster without machines."""
    most = np.zeros(len(clusters), dtype=np.int32)
    np.maximum.at(most, machine_cluster, 1 if capacities is None else capacities.cpus)
    return dict(zip((spec.name for spec in clusters), most.tolist(), strict=True))


def only_of(jobs: Columns, clusters: Iterable[str], order: Any) -> list[str] | None:
    """The column ``only``, equal sets of clusters spelled alike; None if it says nothing."""
    given: list[str] = jobs.get(ONLY.name, [])
    if not any(given):
        return None
    spelled = {text: only_text(text.split(ONLY_SEPARATOR), clusters) for text in set(given) if text}
    return reordered([spelled.get(text, "") for text in given], order)


def only_text(names: Iterable[str], clusters: Iterable[str]) -> str:
    """Some clusters as a value of the column ``only``, in the order of the campus's `clusters`."""
    wanted = set(names)
    return ONLY_SEPARATOR.join(name for name in clusters if name in wanted)


def estimates_of(jobs: Columns, order: Any) -> Floats | None:
    """The column ``estimate_s``; None if it says nothing."""
    given: Floats | None = jobs.get(ESTIMATE.name)
    return None if given is None or bool(np.isnan(given).all()) else given[order]


def written_amounts(amounts: Amounts | None, columns: Sequence[Column]) -> list[Written]:
    """Those of the columns of CPUs, memory and GPUs that say something."""
    if amounts is None:
        return []
    cpus, *beside = columns
    written: list[Written] = [(cpus, amounts.cpus.tolist())] if amounts.is_wide else []
    for column, values in zip(beside, (amounts.memory_mib, amounts.gpus), strict=True):
        if not bool(np.isnan(values).all()):
            written.append((column, with_gaps(values)))
    return written


def written_requests(campus: Campus) -> list[Written]:
    """The optional columns of ``jobs.csv`` that say something."""
    written = written_amounts(campus.requests, JOB_AMOUNTS)
    if campus.only is not None:
        written.append((ONLY, campus.only))
    if campus.estimate_s is not None:
        written.append((ESTIMATE, with_gaps(campus.estimate_s)))
    return written


def with_gaps(values: Floats) -> list[float | None]:
    """Values as they are written: nothing for nan."""
    return [None if isnan(value) else value for value in values.tolist()]


def reordered(names: list[str], order: Any) -> list[str]:
    """Names in an order: an index of them, or a full slice."""
    return names if isinstance(order, slice) else [names[place] for place in order]
