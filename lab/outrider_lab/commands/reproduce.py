"""Run a paper's experiments again and judge its claims."""

from importlib import import_module
from typing import Final

import click

from outrider.cli.help_lines import keep_lines

SECTION = "Judge"

_MODULES: Final = "outrider_lab.commands.reproductions"

PAPERS: Final = ("mcgough", "perez", "vengerov", "automata")


class Papers(click.Group):
    """One command for each paper, imported when it is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the papers, by name."""
        return list(PAPERS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command of a paper, or None if there is none of that name."""
        if cmd_name not in PAPERS:
            return None
        command: click.Command = import_module(f"{_MODULES}.{cmd_name}").command
        return keep_lines(command)


@click.group(
    "reproduce", cls=Papers, short_help="Run a paper's experiments again and judge its claims."
)
def command() -> None:
    """Run a paper's experiments again and judge its claims.

    Use it to see whether what a policy is said to do holds here: each claim gets an interval and a
    verdict. A paper's own --help says what is run and for how long.

    Example:
      outrider reproduce mcgough --quick --report report
    """
