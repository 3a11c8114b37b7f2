"""The ``key=value`` pairs of a record's message, as PBS really writes them."""

import re
from collections.abc import Mapping
from typing import Final

EPOCHS: Final = ("ctime", "qtime", "etime", "start", "end")
"""Pairs whose values are Unix seconds: exact, whatever zone the server's clock shows."""

_READ: Final = frozenset(
    {
        *EPOCHS, "user", "owner", "group", "account", "project", "exec_host", "Exit_status",
        "exit_status", "interactive", "Resource_List.nodes", "Resource_List.ncpus",
        "Resource_List.select", "Resource_List.walltime",
    }
)  # fmt: skip
"""Keys that say what is told of a job."""
_READ_INSIDE = re.compile(r"\s(?:" + "|".join(map(re.escape, sorted(_READ))) + r")=")

_PAIR = re.compile(r"""(?<!\S)([^\s=]+)=("[^"]*"(?!\S)|'[^']*'(?!\S)|\S*)""")
_SPACED = re.compile(r"""=(?:"[^"\s]*\s|'[^'\s]*\s)""")
_RUN_ON = re.compile(r"([\d.]+)([A-Za-z_][\w.]*)=(.*)", re.ASCII)
_SECONDS = re.compile(r"\d{1,10}\.\d{1,9}", re.ASCII)
_UNITS_S: Final = (1, 60, 3_600, 86_400)


class AmbiguousError(ValueError):
    """A message that can be read twice, as a user wrote pairs into one of its values."""


def parse(message: str) -> dict[str, str]:
    """The pairs of a message; of a key that comes twice, the last.

    A value may stand in quotes, and only then holds spaces for sure. Words without ``=`` belong
    to nobody. Where the space after an epoch is missing, the next pair is found all the same.

    Raises:
        AmbiguousError: a key that says what is told of the job comes twice with two values, or
            stands inside of quotes: accounts and names are written by users.

    >>> parse('jobname="a b" etime=5start=6 Resource_List.select=1:ncpus=4')
    {'jobname': 'a b', 'etime': '5', 'Resource_List.select': '1:ncpus=4', 'start': '6'}
    """
    pairs: dict[str, str] = {}
    if _SPACED.search(message):
        for key, value in _PAIR.findall(message):
            if value[:1] in ('"', "'") and _READ_INSIDE.search(value):
                raise AmbiguousError(key)
            _add(pairs, key, _unquoted(value))
    else:  # by far the most common, and in half the time
        for word in message.replace('"', "").split():
            key, equals, value = word.partition("=")
            if equals:
                if key in pairs:
                    _add(pairs, key, value)
                else:
                    pairs[key] = value
    for key in EPOCHS:
        value = pairs.get(key, "0")
        if not value.isdecimal():
            run_on = _RUN_ON.fullmatch(value)
            if run_on is not None:
                pairs[key], follower, rest = run_on.groups()
                pairs.setdefault(follower, rest)
    return pairs


def epoch(fields: Mapping[str, str], key: str) -> float | None:
    """Unix seconds under a key; None where it is missing, empty or 0, PBS's word for "not yet".

    Raises:
        ValueError: it is something else, or later than the year 2286.
    """
    value = fields.get(key)
    if not value:
        return None
    if value.isdecimal() and len(value) <= 10:
        return float(value) or None
    if not _SECONDS.fullmatch(value):
        raise ValueError(f"{key}={value} is no time; right would be {key}=1795231020")
    return float(value) or None


def duration_s(text: str) -> float | None:
    """Seconds of ``[[days:]hours:]minutes:seconds`` or plain seconds; None if it is neither.

    >>> duration_s("01:30:00"), duration_s("90")
    (5400.0, 90.0)
    """
    parts = text.partition(".")[0].split(":")
    if len(parts) > len(_UNITS_S) or not all(part.isdecimal() and len(part) < 10 for part in parts):
        return None
    return float(
        sum(int(part) * unit for part, unit in zip(reversed(parts), _UNITS_S, strict=False))
    )


def _add(pairs: dict[str, str], key: str, value: str) -> None:
    if key in _READ and pairs.get(key, value) != value:
        raise AmbiguousError(key)
    pairs[key] = value


def _unquoted(value: str) -> str:
    return value[1:-1] if value[:1] in ('"', "'") and value[-1:] == value[:1] else value
