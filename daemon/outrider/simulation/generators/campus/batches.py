"""Batches: jobs that one user submits together."""

from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int32]

SIZE_MEDIAN: Final = 22.0
SIZE_SPREAD: Final = 1.40
LARGEST: Final = 700
SMALLEST_LARGEST: Final = 20
SPREAD_MEDIAN_S: Final = 900.0
SPREAD_SPREAD: Final = 1.2
LONGEST_SPREAD_S: Final = 8 * 3600.0

WEEKEND: Final = 0.40
HOUR_PROFILE: Final = np.array(
    (
        2.5, 2.5, 2.5, 2.5, 2.6, 3.0, 3.3, 3.8, 4.4, 5.0, 5.5, 5.8,
        6.2, 6.3, 6.2, 6.0, 5.7, 5.2, 4.8, 4.0, 3.6, 3.0, 2.9, 2.7,
    )
)  # fmt: skip
"""Batches by the hour of the day at which they begin, per cent."""

STORM_FROM_S: Final = 9 * 3600.0
STORM_UNTIL_S: Final = 21 * 3600.0


class Batches(NamedTuple):
    """`size`: (batches,); `batch` number, `user` and `submit_s`: (jobs,)."""

    size: NDArray[np.int64]
    batch: NDArray[np.int64]
    user: Ints
    submit_s: Floats


def draw_batches(
    jobs: int, users: Ints, weight: Floats, size_ratio: float, day_of_week: int, span_s: float,
    rng: np.random.Generator,
) -> Batches:  # fmt: skip
    """Draw batches that sum to exactly `jobs`; the last one is truncated."""
    largest = max(SMALLEST_LARGEST, round(LARGEST * size_ratio))
    size = _sizes(jobs, largest, rng)
    begin_s = _beginnings(len(size), day_of_week, span_s, rng)
    spread_s = SPREAD_MEDIAN_S * np.exp(SPREAD_SPREAD * rng.standard_normal(len(size)))
    spread_s = np.minimum(np.minimum(spread_s, LONGEST_SPREAD_S), span_s - begin_s)
    owner = rng.choice(users, len(size), p=weight / weight.sum())
    batch = np.repeat(np.arange(len(size)), size)
    submit_s = np.round(begin_s[batch] + spread_s[batch] * rng.random(jobs), 1)
    return Batches(size, batch, owner[batch].astype(np.int32), np.minimum(submit_s, span_s))


def _sizes(jobs: int, largest: int, rng: np.random.Generator) -> NDArray[np.int64]:
    drawn: list[NDArray[np.int64]] = []
    missing = jobs
    while missing > 0:
        drawn_size = SIZE_MEDIAN * np.exp(SIZE_SPREAD * rng.standard_normal(1_024))
        size = np.clip(np.rint(drawn_size), 1, largest).astype(np.int64)
        enough = int(np.searchsorted(np.cumsum(size), missing)) + 1
        size = size[:enough]
        drawn.append(size)
        missing -= int(size.sum())
    sizes = np.concatenate(drawn) if drawn else np.empty(0, dtype=np.int64)
    if missing < 0:
        sizes[-1] += missing
    return sizes


def _beginnings(count: int, day_of_week: int, span_s: float, rng: np.random.Generator) -> Floats:
    """(count,) begin times: an hour by the profiles of day and week, then uniform within it."""
    hours = np.arange(-int(-span_s // 3600))
    weekday = (hours // 24 + day_of_week) % 7
    weight = HOUR_PROFILE[hours % 24] * np.where(weekday >= 5, WEEKEND, 1.0)
    hour = rng.choice(hours, count, p=weight / weight.sum())
    return np.minimum((hour + rng.random(count)) * 3600.0, span_s)


def draw_storm(count: int, day: int, span_s: float, rng: np.random.Generator) -> Floats:
    """(count,) submission times, uniform over the working day, truncated at the trace's end."""
    from_s = min(day * 86_400 + STORM_FROM_S, span_s)
    until_s = min(day * 86_400 + STORM_UNTIL_S, span_s)
    return np.round(from_s + (until_s - from_s) * rng.random(count), 1)
