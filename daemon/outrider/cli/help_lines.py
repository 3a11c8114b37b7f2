"""Line wrapping of command help: examples and tables keep their lines."""

import inspect
import re
from typing import Final

import click

_NO_WRAP: Final = "\b"  # click's mark for a paragraph that is not to be wrapped
_KEPT: Final = re.compile(r"^(?:Example|Exit codes):", re.MULTILINE)


def keep_lines(command: click.Command) -> click.Command:
    """Keep the lines of examples in a command's help, and in its subcommands' help."""
    if command.help and _NO_WRAP not in command.help:
        text = inspect.cleandoc(command.help)
        command.help = _KEPT.sub(lambda head: f"{_NO_WRAP}\n{head[0]}", text)
    if isinstance(command, click.Group):
        for part in command.commands.values():
            keep_lines(part)
    return command
