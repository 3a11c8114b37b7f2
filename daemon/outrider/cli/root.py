"""The top of the command tree: which commands there are, and what each is for."""

import inspect
import re
from importlib import import_module
from typing import Any, Final, NamedTuple

import click

from outrider.model.errors import nearest

COMPLETION_VARIABLE: Final = "_OUTRIDER_COMPLETE"
_MODULES: Final = "outrider.cli.commands"
_AS_WRITTEN: Final = "\b"  # click's mark for a paragraph that is not to be wrapped
_KEPT: Final = re.compile(r"^(?:Example|Exit codes):", re.MULTILINE)


class Entry(NamedTuple):
    """A command that has not been imported: the section of the help it stands in, and its line."""

    section: str
    line: str


COMMANDS: Final = {
    "demo": Entry("Start", "Run the daemon in shadow beside a simulated campus."),
    "run": Entry("Start", "Run the daemon beside a batch system."),
    "replay": Entry("Judge", "Run a trace under policies and compare what they would bring."),
    "compare": Entry("Judge", "Compare policies on workload files, job by job."),
    "generate": Entry("Judge", "Make a trace by chance."),
    "ingest": Entry("Judge", "Read the logs a batch system wrote and report what happened."),
    "train": Entry("Judge", "Let a policy learn before it goes live."),
    "reproduce": Entry("Judge", "Run a paper's experiments again and judge its claims."),
    "drift": Entry("Judge", "See whether learning pays where the world changes."),
    "estimate": Entry("Judge", "Score run time estimators on workload files."),
    "sweep": Entry("Judge", "Run a grid of policies, settings and traces, here or on a cluster."),
    "export": Entry("Judge", "Make a trace of what was recorded."),
    "status": Entry("Ask", "Show how the running daemon and its site fare."),
    "explain": Entry("Ask", "Say why a job waits, or where it was sent and why."),
    "ledger": Entry("Ask", "Show, export or verify the decisions that were recorded."),
    "check-config": Entry("Set up", "Check a configuration file and say what it means."),
    "doctor": Entry("Set up", "Examine everything the daemon needs and name the remedies."),
    "plugins": Entry("Set up", "List adapters, policies, readers, estimators and utilities."),
    "completion": Entry("Set up", "Print a script that lets a shell complete Outrider's words."),
}


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used; its help imports none."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names, in the order of the help."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none of that name."""
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{_MODULES}.{cmd_name.replace('-', '_')}")
        command: click.Command = module.command
        return keep_lines(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the nearest that there is."""
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            raise click.UsageError(f'no command "{name}"; {nearest(name, COMMANDS)}', ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section, from their lines alone."""
        for section in dict.fromkeys(entry.section for entry in COMMANDS.values()):
            with formatter.section(section):
                formatter.write_dl(
                    [(n, entry.line) for n, entry in COMMANDS.items() if entry.section == section]
                )


def keep_lines(command: click.Command) -> click.Command:
    """Let examples stand in the help as they were written, line by line, also of parts."""
    if command.help and _AS_WRITTEN not in command.help:
        text = inspect.cleandoc(command.help)
        command.help = _KEPT.sub(lambda head: f"{_AS_WRITTEN}\n{head[0]}", text)
    if isinstance(command, click.Group):
        for part in command.commands.values():
            keep_lines(part)
    return command


def _print_version(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if not value or ctx.resilient_parsing:
        return
    from outrider import __version__

    click.echo(f"outrider {__version__}")
    ctx.exit()


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
@click.option(
    "-V", "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_version,
    help="Print the version and exit.",
)  # fmt: skip
def outrider() -> None:
    """Outrider rides alongside a batch system: it watches, learns, and says what would be better.

    Begin with `outrider demo`; it needs nothing. `outrider COMMAND --help` explains one command,
    with an example.

    Exit codes:
      0   done
      1   it ran and the answer is no
      2   bad use, configuration or trace
      3   a peer could not be reached
      70  a fault of Outrider's own
    """


keep_lines(outrider)
