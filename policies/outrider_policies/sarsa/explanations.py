"""Explanations of why a job is queued or would start."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from outrider_policies.sarsa.job_features import Guards, JobColumns

_SHOWN: Final = 4


class QueuePosition(NamedTuple):
    """A job's position among all queued jobs.

    Attributes:
        at: its row.
        jobs, values: of all queued jobs, by row.
        guards: the active guards.
        guarded: row and reason of the job that a guard puts first; None if no guard acts.
        now: the time, seconds.
    """

    at: int
    jobs: JobColumns
    values: NDArray[np.float64]
    guards: Guards
    guarded: tuple[int, str] | None
    now: float


def kind_of(jobs: JobColumns, at: int) -> str:
    """Return a label of a job's kind: ``batch physics 12 min``, ``x4`` for four CPUs."""
    name = "interactive" if jobs.interactive[at] else "batch"
    estimate_s, cpus = jobs.estimate_s[at], int(jobs.cpus[at])
    length = "of unknown length" if np.isnan(estimate_s) else f"{estimate_s / 60:.3g} min"
    return f"{name} {jobs.vo_names[jobs.vo[at]]} {length}" + (f" x{cpus}" if cpus > 1 else "")


def best_few(row: int, jobs: JobColumns, values: NDArray[np.float64]) -> dict[str, float]:
    """Return the values of the chosen job and of the best few, by label."""
    best = np.argpartition(-values, _SHOWN)[:_SHOWN] if len(values) > _SHOWN else range(len(values))
    by_label = {kind_of(jobs, row): float(values[row])}
    for at in sorted(best, key=lambda at: -values[at]):
        by_label.setdefault(kind_of(jobs, int(at)), float(values[at]))
    return by_label


def why(position: QueuePosition) -> str:
    """Describe a job's value and rank, which job is first, and which guard acts or when."""
    at, jobs, values, guards, guarded, now = position
    value = values[at]
    if guarded is not None and guarded[0] == at:
        waited_min = (now - jobs.submit_s[at]) / 60
        return (
            f"it has waited {waited_min:.0f} min and is the oldest of those that waited too long: "
            f"it starts first (its value of {value:.2f} does not matter now)"
        )
    before = int((values > value).sum())
    if guarded is None and not before:
        text = f"its value is {value:.2f}, the highest of {len(jobs)} waiting jobs: it starts first"
    else:
        first = int(values.argmax()) if guarded is None else guarded[0]
        by = "which has the highest value" if guarded is None else "which has waited too long"
        text = (
            f"its value is {value:.2f}; {before} of {len(jobs)} waiting jobs have a higher one; "
            f"first is {kind_of(jobs, first)} (value {values[first]:.2f}), {by}"
        )
    return f"{text}; {_what_changes_it(position, guards)}"


def _what_changes_it(position: QueuePosition, guards: Guards) -> str:
    at, jobs = position.at, position.jobs
    interactive = bool(jobs.interactive[at])
    limit_s = guards.interactive_s if interactive else guards.batch_s
    if limit_s == float("inf"):
        return "no starvation guard is active"
    left_min = (limit_s - (position.now - jobs.submit_s[at])) / 60
    turn = "the oldest first" if interactive else "while no interactive job waits, the oldest first"
    if left_min <= 0:
        return f"it has waited long enough to precede higher values, {turn}"
    return f"in {left_min:.0f} min it precedes higher values, {turn}"
