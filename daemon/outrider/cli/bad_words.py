"""Words of the command line that cannot be used, told in words of their reader, not of a library.

`click` finds them; its own messages speak of ranges as `x>=1` and of dates as `%Y-%m-%d`.
"""

from collections.abc import Sequence
from typing import Any

import click


def bad_word_text(error: click.ClickException) -> str:
    """What is wrong, with what would be right."""
    parameter = getattr(error, "param", None)
    if isinstance(error, click.MissingParameter) and parameter is not None:
        return f"{_named(parameter)} is missing; expected {_whole(parameter)}"
    if isinstance(error, click.BadParameter) and parameter is not None:
        value = _refused(error.message)
        if value is not None:
            return f"{_named(parameter)} {value}: expected {right_word(parameter)}"
        return f"{_named(parameter)}: {error.message}"
    return error.format_message()


def right_word(parameter: click.Parameter) -> str:
    """What may stand there: ``a whole number, 1 or more``."""
    kind: Any = parameter.type
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        return _ranged(kind)
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(map(str, kind.choices))}"
    if isinstance(kind, click.DateTime):
        return "a date, as in 2026-03-31"
    if isinstance(kind, click.Path):
        return "a folder" if not kind.file_okay else "a file"
    names = {"integer": "a whole number", "float": "a number", "boolean": "true or false"}
    return names.get(kind.name, "a word")


def _ranged(kind: Any) -> str:
    words = ["a whole number" if isinstance(kind, click.IntRange) else "a number"]
    if kind.min is not None:
        words.append(f"more than {kind.min:g}" if kind.min_open else f"{kind.min:g} or more")
    if kind.max is not None:
        words.append(f"less than {kind.max:g}" if kind.max_open else f"at most {kind.max:g}")
    return ", ".join(words)


def _named(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(click.Context(click.Command("outrider")))


def _whole(parameter: click.Parameter) -> str:
    """A missing parameter as it is written, and what may stand there."""
    if isinstance(parameter, click.Option):
        shown = parameter.metavar or parameter.type.name.upper()
        return f"{_named(parameter)} {shown}, {right_word(parameter)}"
    return right_word(parameter)


_REFUSALS: Sequence[str] = (
    " is not a valid ", " is not in the range ", " is not one of ", " does not match the format",
)  # fmt: skip


def _refused(message: str) -> str | None:
    """The value that a message of click's own types begins with; None for a message of ours."""
    for refusal in _REFUSALS:
        value, found, _ = message.partition(refusal)
        if found:
            return f'"{value.strip(chr(39))}"'
    return None
