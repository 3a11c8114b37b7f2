"""Guards: figures of the last hours past which a mode that acts falls back to shadow. Pure code."""

from collections import deque
from typing import Final, NamedTuple

_SAMPLES: Final = 60
"""Of a window: a figure is up to a sixtieth of it older or younger than it says."""
LEAST_N: Final = 20
"""Of starts, or of changes: fewer say nothing."""


class Bounds(NamedTuple):
    """Guards: figures past these demote the mode. None: that figure is not guarded."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness_least: float | None = None
    error_ratio: float | None = None


class Figures(NamedTuple):
    """What the guards look at, over the window they are told of. None: not known yet."""

    mean_wait_s: float | None = None
    badput_ratio: float | None = None
    fairness: float | None = None
    error_ratio: float | None = None


class Totals(NamedTuple):
    """What is counted, since whenever; it only grows.

    Attributes:
        at_s: when, seconds.
        waited_s: waits of the jobs that started, seconds, and their number.
        starts: see there.
        goodput_s: CPU-seconds of completed runs.
        badput_s: CPU-seconds of runs that were thrown away.
        changes: jobs that were changed in the batch system.
        failures: jobs for which that was refused, and calls that failed.
    """

    at_s: float
    waited_s: float
    starts: float
    goodput_s: float
    badput_s: float
    changes: float
    failures: float


class GuardWindow:
    """The figures of a window that moves along.

    Args:
        window_s: how long it is, seconds.
    """

    def __init__(self, window_s: float) -> None:
        self._window_s = window_s
        self._samples: deque[Totals] = deque()

    def figures(self, now: Totals, fairness: float | None) -> Figures:
        """The figures from the begin of the window to now; None where too little happened."""
        samples = self._samples
        while len(samples) > 1 and samples[1].at_s <= now.at_s - self._window_s:
            samples.popleft()
        if not samples or now.at_s - samples[-1].at_s >= self._window_s / _SAMPLES:
            samples.append(now)
        then = samples[0]
        starts = now.starts - then.starts
        good_s, bad_s = now.goodput_s - then.goodput_s, now.badput_s - then.badput_s
        changes, failures = now.changes - then.changes, now.failures - then.failures
        enough = starts >= LEAST_N
        return Figures(
            mean_wait_s=(now.waited_s - then.waited_s) / starts if enough else None,
            badput_ratio=bad_s / (good_s + bad_s) if enough and good_s + bad_s > 0 else None,
            fairness=fairness if enough else None,
            error_ratio=failures / (changes + failures) if changes + failures >= LEAST_N else None,
        )


def breaches(bounds: Bounds, figures: Figures) -> list[str]:
    """Which guards a site's figures break, in words; empty if none."""
    found = []
    for name, bound, value, sign in (
        ("mean wait", bounds.mean_wait_s, figures.mean_wait_s, 1),
        ("badput ratio", bounds.badput_ratio, figures.badput_ratio, 1),
        ("fairness", bounds.fairness_least, figures.fairness, -1),
        ("error ratio", bounds.error_ratio, figures.error_ratio, 1),
    ):
        if bound is not None and value is not None and sign * (value - bound) > 0:
            word = "above" if sign > 0 else "below"
            found.append(f"{name} {value:g} is {word} its bound {bound:g}")
    return found
