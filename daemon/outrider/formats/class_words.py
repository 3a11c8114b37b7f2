"""The words of ``--class-by``, parsed into rules of `outrider.formats.job_classes`."""

from math import isfinite
from pathlib import Path
from typing import Final

from outrider.formats.job_classes import (
    ByPlace,
    ByRequest,
    ByTruth,
    ByUser,
    ClassRule,
    NoClass,
)
from outrider.model.errors import ConfigurationError, nearest

_WORDS: Final = ("requested", "queue", "partition", "user", "truth", "none")
_RIGHT: Final = (
    "requested:S, queue:NAME,..., partition:NAME,..., user:FILE, truth:S or none, as requested:900"
)


def class_rule(text: str, where: str = "--class-by") -> ClassRule:
    """Parse a rule, as ``requested:900``; of ``user:FILE`` the file is read at once.

    Raises:
        ConfigurationError: names the option, the value and what would be right.

    >>> class_rule("queue:interactive,short").source
    'queue:interactive,short'
    """
    kind, colon, value = text.partition(":")
    if kind == "none" and not colon:
        return NoClass()
    if kind in ("requested", "truth"):
        below_s = _seconds(value, f'{where} "{text}"', kind)
        return ByRequest(below_s) if kind == "requested" else ByTruth(below_s)
    if kind == "queue" or kind == "partition":
        names = tuple(dict.fromkeys(name.strip() for name in value.split(",")))
        if not all(names):
            raise ConfigurationError(
                f'{where} "{text}": right would be {kind}:NAME,..., as {kind}:interactive'
            )
        return ByPlace(kind, names)
    if kind == "user":
        return ByUser(value, _users_in(value, f'{where} "{text}"'))
    hint = nearest(kind, _WORDS)
    meant = f"{hint} " if kind not in _WORDS and hint.endswith("?") else ""
    raise ConfigurationError(f'{where} "{text}": no such rule; {meant}right would be {_RIGHT}')


def _seconds(text: str, where: str, kind: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = -1.0
    if not (isfinite(seconds) and seconds >= 0):
        raise ConfigurationError(
            f"{where}: right would be {kind}:S with S seconds, 0 or more, as {kind}:900"
        )
    return seconds


def _users_in(name: str, where: str) -> tuple[str, ...]:
    """The users of a file, one a line; what follows ``#`` is a comment."""
    right = "right would be user:FILE, a text file with one of the trace's users a line"
    try:
        text = Path(name).read_text(encoding="utf-8") if name else ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise ConfigurationError(f"{where}: cannot be read: {why}; {right}") from error
    lines = (line.partition("#")[0].strip() for line in text.splitlines())
    users = tuple(dict.fromkeys(line for line in lines if line))
    if not users:
        raise ConfigurationError(f"{where}: names no user; {right}")
    return users
