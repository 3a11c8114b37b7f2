"""What a policy gives to be kept must be plain data: refused by the method that gave it.

Keys stay in the state until a run ends and come back from a snapshot; what a policy saves is read
again by another process; scores are written to the ledger. A set, a record or a number of numpy's
would fail only there, long afterwards and far from its author.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

PLAIN_KEYS: Final = frozenset({bool, float, int, str, type(None)})
"""Types of a key that need no further look. Their subclasses would come back as something else."""

_RIGHT_KEY: Final = "right would be None, a bool, an int, a float, a str, or a tuple of those"
_NAMES: Final = frozenset({str})
_NUMBERS: Final = frozenset({float, int, bool})


def check_key(key: Any) -> None:
    """A key from `group_key`. Raises `TypeError` if it is not plain data."""
    wrong = _odd_part(key)
    if wrong is not None:
        inside = "" if wrong is key else f", which holds {_named(wrong)}"
        raise TypeError(f"group_key returned {_named(key)}{inside}; {_RIGHT_KEY}")


def _odd_part(key: Any) -> Any:
    """The part of a key that is not plain; None if it is plain all through."""
    if isinstance(key, tuple):  # named ones, too: what comes back is equal
        return next((odd for part in key if (odd := _odd_part(part)) is not None), None)
    return None if type(key) in PLAIN_KEYS else key


def check_saved(saved: Any) -> None:
    """What `save` gave. Raises `TypeError` if it cannot be written to a snapshot."""
    try:
        msgspec.msgpack.encode(saved)
    except (TypeError, ValueError, OverflowError) as error:
        found = _odd_place(saved, "")
        what = str(error) if found is None else f"{_named(found[1])} at {found[0] or 'its top'}"
        raise TypeError(
            f"save returned {what}; right would be dicts, lists, strings, numbers of Python's own, "
            "bools and None"
        ) from error
    if not isinstance(saved, dict):
        raise TypeError(f"save returned {_named(saved)}; right would be a dict")


def _odd_place(value: Any, path: str) -> tuple[str, Any] | None:
    """The first part that cannot be written, and the path to it."""
    parts: Any = ()
    if isinstance(value, Mapping):
        parts = value.items()
    elif isinstance(value, Sequence) and not isinstance(value, (str, bytes)):
        parts = enumerate(value)
    else:
        try:
            msgspec.msgpack.encode(value)
        except (TypeError, ValueError, OverflowError):
            return path, value
    for name, part in parts:
        if isinstance(value, Mapping) and type(name) not in PLAIN_KEYS:
            return f"a key of {path or 'the dict'}", name
        found = _odd_place(part, f"{path}[{name!r}]")
        if found is not None:
            return found
    return None


def check_scores(scores: Mapping[Any, Any], method: str) -> None:
    """Scores from a policy. Raises `TypeError` if they are not names with numbers of Python's."""
    if _NAMES.issuperset(map(type, scores)) and _NUMBERS.issuperset(map(type, scores.values())):
        return  # every decision comes by here
    for name, score in scores.items():
        if type(name) is not str:
            raise TypeError(
                f"{method} returned scores with the key {_named(name)}; right would be names"
            )
        if type(score) not in _NUMBERS:
            raise TypeError(
                f"{method} returned as score of {name!r} {_named(score)}; right would be a number "
                "of Python's own: float(...)"
            )


def _named(value: Any) -> str:
    kind = type(value)
    module = "" if kind.__module__ == "builtins" else f"{kind.__module__}."
    return f"{value!r:.80} of type {module}{kind.__qualname__}"
