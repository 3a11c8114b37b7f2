"""How the help of a command is wrapped: examples and tables stand as they were written."""

import inspect
import re
from typing import Final

import click

_AS_WRITTEN: Final = "\b"  # click's mark for a paragraph that is not to be wrapped
_KEPT: Final = re.compile(r"^(?:Example|Exit codes):", re.MULTILINE)


def keep_lines(command: click.Command) -> click.Command:
    """Let examples stand in the help as they were written, line by line, also of parts."""
    if command.help and _AS_WRITTEN not in command.help:
        text = inspect.cleandoc(command.help)
        command.help = _KEPT.sub(lambda head: f"{_AS_WRITTEN}\n{head[0]}", text)
    if isinstance(command, click.Group):
        for part in command.commands.values():
            keep_lines(part)
    return command
