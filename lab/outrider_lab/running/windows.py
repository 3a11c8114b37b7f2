"""Windows of a workload: the jobs that came within a stretch of time, to be run by themselves."""

import dataclasses
from collections.abc import Sequence
from typing import Final, TypeVar

import numpy as np

from outrider.formats.workload import Workload
from outrider.model.errors import TraceError

DAY_S: Final = 86_400.0

Value = TypeVar("Value")


def within(workload: Workload, begin_s: float, end_s: float, name: str) -> Workload:
    """The jobs submitted from one moment on and before another, on the same machines.

    Args:
        workload: not changed.
        begin_s: seconds after its first submission.
        end_s: the same.
        name: of the window.

    Returns:
        A workload on the same clock. Of what it leaves out, `skipped` counts only the jobs outside
        the window: what the file's reader left out has no moment.

    Raises:
        TraceError: no job came then.
    """
    after_s = workload.submit_s - workload.submit_s[0]
    first, last = np.searchsorted(after_s, [begin_s, end_s], side="left").tolist()
    if first == last:
        raise TraceError(f"{name}: no job came then; the last came on day {after_s[-1] / DAY_S:g}")
    return part_of(workload, first, last, name)


def part_of(workload: Workload, first: int, last: int, name: str) -> Workload:
    """The jobs of these rows, from the first and before the last, on the same machines.

    Args:
        workload: not changed.
        first: a row.
        last: the row behind the last one.
        name: of the part.
    """
    rows = slice(first, last)

    def cut(values: Sequence[Value]) -> list[Value]:
        return list(values[rows])

    outside = len(workload.submit_s) - (last - first)
    return dataclasses.replace(
        workload,
        name=name,
        job_names=cut(workload.job_names),
        submit_s=workload.submit_s[rows],
        run_s=workload.run_s[rows],
        cpus=workload.cpus[rows],
        requested_s=workload.requested_s[rows],
        wait_s=workload.wait_s[rows],
        estimate_s=workload.estimate_s[rows],
        user=cut(workload.user),
        vo=cut(workload.vo),
        job_class=cut(workload.job_class),
        resources=cut(workload.resources),
        eligible=cut(workload.eligible),
        skipped={"outside the window": outside} if outside else {},
    )
