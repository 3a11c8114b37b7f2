"""Loops over arrays, compiled where numba (extra `forecast`) is there, plain Python elsewhere."""

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, Final, ParamSpec, TypeVar, cast

HAS_COMPILER: Final = find_spec("numba") is not None
"""Whether `compiled` compiles; without it results are the same, some hundred times later."""

_P = ParamSpec("_P")
_R = TypeVar("_R")


def compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The function as machine code, or as it is; its plain form is the attribute ``py_func``.

    Machine code is kept in a cache beside the module, or in the user's; where neither can be
    written, it is made anew by each process.
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
