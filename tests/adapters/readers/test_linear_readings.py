"""Time to read hostile records: it grows no faster than their length."""

import gc
import time
from collections.abc import Callable
from itertools import islice

import pytest

from outrider.api import LogReader, ReaderOptions
from tests.adapters.readers import hostile

SMALL = 8_000
LARGE = 4 * SMALL
CHEAP_S = 0.010
"""Limit for a pattern. One that searches the rest of the record from each of its bytes takes 50 ms
at `LARGE` even at the speed of memory, and half a second otherwise.
"""
MOST_TIMES = 6


def best_s(call: Callable[[], object], tries: int) -> float:
    """Return the minimum CPU seconds of this thread, which other load does not increase.

    Without the garbage collector, as in `timeit`: what it costs grows with all that other tests
    left in this process.
    """
    times = []
    gc.disable()
    try:
        for _ in range(tries):
            before = time.thread_time()
            call()
            times.append(time.thread_time() - before)
    finally:
        gc.enable()
    return min(times)


def read(kind: type[LogReader], data: bytes) -> None:
    kind.recognises(data)
    reader = kind(ReaderOptions(year=2026, timezone="Europe/Berlin"))
    reading = reader.read(data)
    reader.restore(reader.save())
    reader.read(data[reading.consumed :], final=True)


def is_linear(kind: type[LogReader], shape: tuple[str, bytes, bytes, bytes]) -> bool:
    small, large = (hostile.repeated(shape, size) for size in (SMALL, LARGE))
    if best_s(lambda: read(kind, large), 1) <= CHEAP_S:
        return True
    for _ in range(3):  # one disturbed measurement is no proof
        large_s = best_s(lambda: read(kind, large), 2)
        if large_s <= max(CHEAP_S, MOST_TIMES * best_s(lambda: read(kind, small), 4)):
            return True
    return False


@pytest.mark.parametrize("step", [3, pytest.param(1, marks=pytest.mark.long)])
@pytest.mark.parametrize("kind", hostile.READERS, ids=lambda kind: kind.name)
def test_four_times_the_record_costs_at_most_six_times_the_cpu(
    kind: type[LogReader], step: int
) -> None:
    """Return every third shape, and all shapes among the long tests."""
    slow: list[str] = []
    for shape in islice(hostile.shapes(kind), 0, None, step):
        if not is_linear(kind, shape):
            slow.append(shape[0])
        assert len(slow) < 5, slow  # each costs seconds
    assert slow == []
