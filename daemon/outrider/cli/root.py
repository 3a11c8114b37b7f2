"""The top of the command tree: which commands there are, and what each is for."""

from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click

from outrider.cli.help_lines import keep_lines
from outrider.cli.printing import echo
from outrider.model.errors import PluginError, nearest

if TYPE_CHECKING:
    import ast
    from importlib.machinery import ModuleSpec
    from importlib.metadata import EntryPoint


# -- found commands --------------------------------------------------------------------------------
# Commands that packages bring, found by their entry points and imported when they are used.
#
# An entry point of the group ``outrider.commands`` names a command and where it is:
# ``compare = "outrider_lab.commands.compare:command"``. The help imports none of them: it reads the
# first line of the module's docstring, and its constant `SECTION`, from the source alone.

GROUP: Final = "outrider.commands"
SECTION: Final = "More"
"""Of the help, for a command whose module names no other."""
_SECTION_NAME: Final = "SECTION"


class Entry(NamedTuple):
    """What the help says of a command: the section in which it stands, and its line."""

    section: str
    line: str


@cache
def installed_commands() -> "dict[str, EntryPoint]":
    """The commands that are installed, by name, in the order of their names. Imports none."""
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def load_installed(name: str) -> click.Command:
    """Import a command that was found.

    Raises:
        PluginError: it cannot be imported, or is no command; the others go on.
    """
    point = installed_commands()[name]
    try:
        command = point.load()
    except Exception as error:
        raise PluginError(f'command "{name}" ({point.value}) cannot be loaded: {error}') from error
    if not isinstance(command, click.Command):
        raise PluginError(
            f'command "{name}" ({point.value}) is a {type(command).__name__}; expected a '
            "click.Command"
        )
    return command


def entry_of_installed(name: str) -> Entry:
    """What the help says of a command that was found, read from its source.

    A command whose source cannot be read is listed all the same, with the reason.
    """
    import ast

    point = installed_commands()[name]
    try:
        source = _source(point.module)
        module = ast.parse(source)
    except (ImportError, SyntaxError, ValueError) as error:
        return Entry(SECTION, f"Broken: {point.value}: {error}")
    line = (ast.get_docstring(module) or point.value).splitlines()[0]
    return Entry(_constant(module, _SECTION_NAME) or SECTION, line)


def _source(module: str) -> str:
    """The text of a module; nothing is imported. Raises `ImportError`."""
    from importlib.util import find_spec

    top, *rest = module.split(".")
    name, spec = top, find_spec(top)
    for part in rest:
        name = f"{name}.{part}"
        spec = _inside(spec, name)
    source = getattr(getattr(spec, "loader", None), "get_source", None)
    text: str | None = source(name) if source is not None else None
    if text is None:
        raise ModuleNotFoundError(f"there is no source of a module {module}")
    return text


def _inside(package: "ModuleSpec | None", name: str) -> "ModuleSpec | None":
    """The place of a module in a package; None where there is none."""
    from importlib.machinery import PathFinder

    places = None if package is None else package.submodule_search_locations
    return None if places is None else PathFinder.find_spec(name, list(places))


def _constant(module: "ast.Module", name: str) -> str | None:
    """The text that a module gives to a name at its top."""
    import ast

    for statement in module.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=given)], value=ast.Constant(value=str(text))):
                if given == name:
                    return text
            case ast.AnnAssign(target=ast.Name(id=given), value=ast.Constant(value=str(text))):
                if given == name:
                    return text
    return None


# -- root ------------------------------------------------------------------------------------------

COMPLETION_VARIABLE: Final = "_OUTRIDER_COMPLETE"
_MODULES: Final = "outrider.cli.commands"
COMMANDS: Final = {
    "demo": Entry("Start", "Run the daemon in shadow beside a simulated campus."),
    "run": Entry("Start", "Run the daemon beside a batch system."),
    "run-twin": Entry("Start", "Ask the shadow twin from time to time, beside the daemon."),
    "replay": Entry("Judge", "Run a trace under policies and compare what they would bring."),
    "twin": Entry("Judge", "Ask what policies would have cost at a site, and will cost."),
    "forecast": Entry("Judge", "Say when the waiting jobs of a log would start, hour by hour."),
    "report": Entry("Judge", "Report a week: what was, what would have been, how sure."),
    "generate": Entry("Judge", "Make a trace by chance."),
    "ingest": Entry("Judge", "Read the logs a batch system wrote and report what happened."),
    "export": Entry("Judge", "Make a trace of what was recorded."),
    "status": Entry("Ask", "Show how the running daemon and its site fare."),
    "jobs": Entry("Ask", "List the jobs that wait, run or are held now."),
    "machines": Entry("Ask", "List the machines and what they do now."),
    "users": Entry("Ask", "List who waits and who runs now."),
    "rank": Entry("Ask", "Say which of several sites would serve one more job best."),
    "explain": Entry("Ask", "Say why a job waits, or where it was sent and why."),
    "ledger": Entry("Ask", "Show, export or verify recorded decisions and commands."),
    "mode": Entry("Command", "Show the daemon's mode, or lower it at once."),
    "promote": Entry("Command", "Let the daemon climb a step, where the evidence allows it."),
    "release": Entry("Command", "Take back what Outrider has changed in the batch system."),
    "check-config": Entry("Set up", "Check a configuration file and say what it means."),
    "token": Entry("Set up", "Make the token that shows users' names, or lets clients in."),
    "install-service": Entry("Set up", "Write the systemd service of a configuration."),
    "doctor": Entry("Set up", "Examine everything the daemon needs and name the remedies."),
    "plugins": Entry("Set up", "List adapters, policies, readers, estimators and utilities."),
    "levers": Entry("Set up", "Show what may be changed in a batch system, and its set-up."),
    "completion": Entry("Set up", "Print a script that lets a shell complete Outrider's words."),
}
"""The core's own commands, in the order of the help."""


class LazyGroup(click.Group):
    """A group whose commands are imported when they are used; its help imports none.

    Beside the core's own commands there are those that packages bring. One that is broken says so
    when it is used; its neighbours go on.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names: the core's own in the order of the help, then those that were found."""
        return list(dict.fromkeys((*COMMANDS, *installed_commands())))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none of that name.

        Raises:
            PluginError: a command that a package brings cannot be loaded.
        """
        if cmd_name in COMMANDS:
            module = import_module(f"{_MODULES}.{cmd_name.replace('-', '_')}")
            command: click.Command = module.command
            return keep_lines(command)
        if cmd_name in installed_commands():
            return keep_lines(load_installed(cmd_name))
        return None

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command; an unknown one is refused with the nearest that there is."""
        name = args[0]
        is_known = name in COMMANDS or name in installed_commands()
        if not is_known and not name.startswith("-") and not ctx.resilient_parsing:
            right = nearest(name, self.list_commands(ctx))
            raise click.UsageError(f'no command "{name}"; {right}', ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The commands by section, from their lines alone."""
        entries = {name: entry_of(name) for name in self.list_commands(ctx)}
        for section in dict.fromkeys(entry.section for entry in entries.values()):
            with formatter.section(section):
                formatter.write_dl(
                    [(n, entry.line) for n, entry in entries.items() if entry.section == section]
                )


def entry_of(name: str) -> Entry:
    """What the help says of a command; nothing is imported for it."""
    return COMMANDS[name] if name in COMMANDS else entry_of_installed(name)


def _print_version(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if not value or ctx.resilient_parsing:
        return
    from outrider import __version__

    echo(f"outrider {__version__}")
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
