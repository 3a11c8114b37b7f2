"""A cache for what is made of words of a log: long words, which a stranger wrote, stay outside."""

from collections.abc import Callable
from functools import lru_cache, wraps
from typing import Final, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

MOST_CHARACTERS: Final = 1024
"""Over all arguments of a call; what is longer is made anew each time, and not kept."""


def cached_if_short(entries: int) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Like `functools.lru_cache`, with a bound on what an entry takes.

    Without one, records of a mebibyte would fill the memory long before there are `entries`.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        cached = lru_cache(maxsize=entries)(function)

        @wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> T:
            size = sum(len(word) for word in args if isinstance(word, str))
            if size > MOST_CHARACTERS:
                return function(*args, **kwargs)
            return cached(*args, **kwargs)  # type: ignore[arg-type]  # words and numbers

        return call

    return decorate
