"""Why a job is selected, or is not: its score, its place, and what of it counts most."""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from outrider.api import WINDOW_FEATURES, Job
from outrider_policies.window_net.net import Net

_SHOWN: Final = 4
_WORDS: Final = {
    "wait": "its wait", "estimate": "its estimated run time",
    "estimate_known": "whether it has an estimate", "cpus": "its CPUs",
    "fits_now": "whether it fits now", "interactive": "its class",
}  # fmt: skip
"""Of the features in which jobs of one window differ."""


def label(job: Job) -> str:
    """What a job looks like: ``batch physics 12 min``, ``x4`` for four CPUs."""
    spec = job.spec
    length = "of unknown length" if spec.estimate_s is None else f"{spec.estimate_s / 60:.3g} min"
    wide = f" x{spec.cpus}" if spec.cpus > 1 else ""
    return f"{spec.job_class} {spec.vo} {length}{wide}"


def best_few(job: Job, jobs: Sequence[Job], scores: NDArray[np.float64]) -> dict[str, float]:
    """Scores of a job and of the best few of a window, by label."""
    by_label = {label(job): float(scores[jobs.index(job)])}
    for row in np.argsort(-scores, kind="stable")[:_SHOWN].tolist():
        by_label.setdefault(label(jobs[row]), float(scores[row]))
    return by_label


def why(
    row: int, jobs: Sequence[Job], rows: NDArray[np.float32], scores: NDArray[np.float64], net: Net
) -> str:
    """One sentence about the job of a row, as it was when the net last selected.

    Args:
        row: of the job.
        jobs: of the window.
        rows: what the net saw of them.
        scores: what it made of that.
        net: the net.
    """
    first, before = int(scores.argmax()), int((scores > scores[row]).sum())
    of_all = f"of the {len(jobs)} oldest jobs that waited"
    if row == first:
        text = f"score {scores[row]:.2f}, the highest {of_all}: it was tried first"
    else:
        text = (
            f"score {scores[row]:.2f}; {before} {of_all} had more; first was "
            f"{label(jobs[first])} ({scores[first]:.2f})"
        )
    told = _what_counts(row, rows, net)
    return f"{text}; {told}" if told else text


def _what_counts(row: int, rows: NDArray[np.float32], net: Net) -> str:
    """Which feature raises its score most, and which lowers it, against the mean of the window."""
    of_job = rows[row].astype(np.float64)
    names = list(_WORDS)
    columns = [WINDOW_FEATURES.index(name) for name in names]
    others = np.tile(of_job, (len(names), 1))
    others[np.arange(len(names)), columns] = rows[:, columns].mean(axis=0)
    gains = net.scores(of_job[np.newaxis])[0] - net.scores(others)
    most, least = int(gains.argmax()), int(gains.argmin())
    parts = []
    if gains[most] > 0.0:
        parts.append(f"{_WORDS[names[most]]} speaks most for it ({gains[most]:+.2f})")
    if gains[least] < 0.0:
        parts.append(f"{_WORDS[names[least]]} most against it ({gains[least]:+.2f})")
    return ", ".join(parts)
