"""Readable error messages for invalid command-line arguments.

`click` detects the errors; its own messages write ranges as `x>=1` and dates as `%Y-%m-%d`.
"""

from collections.abc import Sequence
from typing import Any

import click


def usage_error_text(error: click.ClickException) -> str:
    """Return what is wrong with an argument, and what is expected."""
    parameter = getattr(error, "param", None)
    if isinstance(error, click.MissingParameter) and parameter is not None:
        return f"{_name_of(parameter)} is missing; expected {_expected_parameter(parameter)}"
    if isinstance(error, click.BadParameter) and parameter is not None:
        value = _rejected_value(error.message)
        if value is not None:
            return f"{_name_of(parameter)} {value}: expected {expected_value(parameter)}"
        return f"{_name_of(parameter)}: {error.message}"
    return error.format_message()


def expected_value(parameter: click.Parameter) -> str:
    """Return a description of the valid values: ``a whole number, 1 or more``."""
    kind: Any = parameter.type
    if isinstance(kind, (click.IntRange, click.FloatRange)):
        return _range_text(kind)
    if isinstance(kind, click.Choice):
        return f"one of {', '.join(map(str, kind.choices))}"
    if isinstance(kind, click.DateTime):
        return "a date, as in 2026-03-31"
    if isinstance(kind, click.Path):
        return "a folder" if not kind.file_okay else "a file"
    names = {"integer": "a whole number", "float": "a number", "boolean": "true or false"}
    return names.get(kind.name, "a word")


def _range_text(kind: Any) -> str:
    words = ["a whole number" if isinstance(kind, click.IntRange) else "a number"]
    if kind.min is not None:
        words.append(f"more than {kind.min:g}" if kind.min_open else f"{kind.min:g} or more")
    if kind.max is not None:
        words.append(f"less than {kind.max:g}" if kind.max_open else f"at most {kind.max:g}")
    return ", ".join(words)


def _name_of(parameter: click.Parameter) -> str:
    if isinstance(parameter, click.Option):
        return max(parameter.opts, key=len)
    return parameter.make_metavar(click.Context(click.Command("outrider")))


def _expected_parameter(parameter: click.Parameter) -> str:
    """Return how a missing parameter is written, and its valid values."""
    if isinstance(parameter, click.Option):
        shown = parameter.metavar or parameter.type.name.upper()
        return f"{_name_of(parameter)} {shown}, {expected_value(parameter)}"
    return expected_value(parameter)


_CLICK_PHRASES: Sequence[str] = (
    " is not a valid ", " is not in the range ", " is not one of ", " does not match the format",
)  # fmt: skip


def _rejected_value(message: str) -> str | None:
    """Return the value that a message of click's types begins with; None for our own messages."""
    for phrase in _CLICK_PHRASES:
        value, found, _ = message.partition(phrase)
        if found:
            return f'"{value.strip(chr(39))}"'
    return None
