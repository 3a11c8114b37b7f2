"""Running jobs of one replicate, for compiled loops: a heap of ends, and the expected ends.

`heap` has rows (end, CPUs, expected end), the least end in row 0. `known` has the rows expected
ends and CPUs of the runs with an estimate, ascending. `n` has the numbers of both.
"""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, ParamSpec, TypeVar, cast

import numpy as np

from outrider.forecast.queue_state import Floats, Ints

# -- compiling -------------------------------------------------------------------------------------
# Loops over arrays, compiled if numba (extra `forecast`) is installed, else plain Python.

HAS_COMPILER: Final = find_spec("numba") is not None
"""True if `compiled` compiles; without it results are the same, but some hundred times slower."""
_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """Return the compiled function, or the function itself; ``py_func`` is its plain form.

    Machine code is cached next to the module, or in the user's cache. If neither can be written,
    each process compiles again.
    """
    if not HAS_COMPILER:
        cast("Any", function).py_func = function
        return function
    from numba import njit

    try:
        done = njit(function, cache=True)
    except RuntimeError:  # no folder for the cache
        done = njit(function)
    return cast("Callable[_P, _R]", done)


# -- running ---------------------------------------------------------------------------------------

RUNNING, KNOWN = 0, 1
"""Indices in `n`: rows of `heap` and columns of `known` in use."""


@compiled
def _move(heap: Floats, source: int, place: int) -> None:
    """Copy a row element by element, which is several times as fast when compiled."""
    for column in range(3):
        heap[place, column] = heap[source, column]


@compiled
def push(heap: Floats, n: int, end_s: float, cpus: float, expected_s: float) -> int:
    """Add a run to a heap of `n`; return the new number."""
    place = n
    while place > 0:
        parent = (place - 1) >> 1
        if heap[parent, 0] <= end_s:
            break
        _move(heap, parent, place)
        place = parent
    heap[place, 0], heap[place, 1], heap[place, 2] = end_s, cpus, expected_s
    return n + 1


@compiled
def pop(heap: Floats, n: int) -> int:
    """Remove the run that ends first from a heap of `n`; return the new number."""
    n -= 1
    end_s = heap[n, 0]
    place = 0
    while True:
        child = 2 * place + 1
        if child >= n:
            break
        if child + 1 < n and heap[child + 1, 0] < heap[child, 0]:
            child += 1
        if end_s <= heap[child, 0]:
            break
        _move(heap, child, place)
        place = child
    _move(heap, n, place)
    return n


@compiled
def begin(
    heap: Floats, known: Floats, n: Ints, end_s: float, expected_s: float, cpus: float
) -> None:
    """Add a run of a job that starts."""
    n[RUNNING] = push(heap, n[RUNNING], end_s, cpus, expected_s)
    if expected_s == np.inf:
        return
    place = int(np.searchsorted(known[0, : n[KNOWN]], expected_s))
    for later in range(n[KNOWN], place, -1):
        known[0, later], known[1, later] = known[0, later - 1], known[1, later - 1]
    known[0, place], known[1, place] = expected_s, cpus
    n[KNOWN] += 1


@compiled
def end_first(heap: Floats, known: Floats, n: Ints) -> float:
    """Remove the run that ends first; return its CPUs."""
    cpus: float = heap[0, 1]
    expected_s = heap[0, 2]
    n[RUNNING] = pop(heap, n[RUNNING])
    _forget(known, n, expected_s, cpus)
    return cpus


@compiled
def evict(heap: Floats, known: Floats, n: Ints) -> float:
    """Remove any run that does not end next; return its CPUs."""
    n[RUNNING] -= 1
    cpus: float = heap[n[RUNNING], 1]
    _forget(known, n, heap[n[RUNNING], 2], cpus)
    return cpus


@compiled
def _forget(known: Floats, n: Ints, expected_s: float, cpus: float) -> None:
    """Remove an expected end."""
    if expected_s == np.inf:
        return
    place = int(np.searchsorted(known[0, : n[KNOWN]], expected_s))
    while known[1, place] != cpus:  # another of the same expected end
        place += 1
    n[KNOWN] -= 1
    for later in range(place, n[KNOWN]):
        known[0, later], known[1, later] = known[0, later + 1], known[1, later + 1]


@compiled
def reserve(
    now_s: float, free_cpus: float, known: Floats, known_n: int, cpus: float
) -> tuple[float, float]:
    """Return when a job will fit by the expected ends, and the spare CPUs; (inf, 0): unknown.

    Overdue runs end now; ends at that very moment count.
    """
    start_s, room = np.inf, free_cpus
    for run in range(known_n):
        end_s = max(known[0, run], now_s)
        if end_s > start_s:
            break
        room += known[1, run]
        if start_s == np.inf and room >= cpus:
            start_s = end_s
    if start_s == np.inf:
        return start_s, 0.0
    return start_s, room - cpus
