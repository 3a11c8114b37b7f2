"""Root of the command tree: the list of commands with their one-line help."""

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


# -- installed commands ----------------------------------------------------------------------------
# Commands of other packages, found by their entry points and imported when they are used.
#
# An entry point of the group ``outrider.commands`` names a command and its location:
# ``compare = "outrider_lab.commands.compare:command"``. The help imports none of them: it reads the
# first line of the module's docstring, and its constant `SECTION`, from the source.

GROUP: Final = "outrider.commands"
SECTION: Final = "More"
"""Help section of a command whose module sets no other."""
_SECTION_NAME: Final = "SECTION"


class Entry(NamedTuple):
    """A command's entry in the help: its section and one line of text."""

    section: str
    line: str


@cache
def installed_commands() -> "dict[str, EntryPoint]":
    """Return the installed commands by name, sorted by name. Imports none."""
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def load_installed(name: str) -> click.Command:
    """Import an installed command.

    Raises:
        PluginError: it cannot be imported, or is not a command; others are not affected.
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
    """Return the help entry of an installed command, read from its source.

    A command whose source cannot be read is still listed, with the reason.
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
    """Return the source of a module without importing it. Raises `ImportError`."""
    from importlib.util import find_spec

    top, *rest = module.split(".")
    name, spec = top, find_spec(top)
    for part in rest:
        name = f"{name}.{part}"
        spec = _inside(spec, name)
    source = getattr(getattr(spec, "loader", None), "get_source", None)
    text: str | None = source(name) if source is not None else None
    if text is None:
        raise ModuleNotFoundError(f"no source of module {module} found")
    return text


def _inside(package: "ModuleSpec | None", name: str) -> "ModuleSpec | None":
    """Return the spec of a module in a package, or None."""
    from importlib.machinery import PathFinder

    places = None if package is None else package.submodule_search_locations
    return None if places is None else PathFinder.find_spec(name, list(places))


def _constant(module: "ast.Module", name: str) -> str | None:
    """Return the string that a module assigns to a top-level name, or None."""
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
    "demo": Entry("Start", "Run the daemon in shadow mode alongside a simulated campus."),
    "run": Entry("Start", "Run the daemon alongside a batch system."),
    "run-twin": Entry("Start", "Run the twin process (used by outrider-twin.service)."),
    "replay": Entry("Judge", "Simulate a trace under policies and compare the results."),
    "twin": Entry("Judge", "Estimate what other policies would have cost at a site, and will."),
    "forecast": Entry("Judge", "Forecast when the waiting jobs of a log would start."),
    "report": Entry("Judge", "Report on past weeks, with estimates for other policies."),
    "generate": Entry("Judge", "Generate a random trace, or a journal from one."),
    "ingest": Entry("Judge", "Read the logs of a batch system and summarise them."),
    "export": Entry("Judge", "Export recorded data as a trace."),
    "status": Entry("Ask", "Show the status of the daemon and its site."),
    "jobs": Entry("Ask", "List the jobs that wait, run or are held now."),
    "machines": Entry("Ask", "List the machines and their state."),
    "users": Entry("Ask", "List users with their waiting and running jobs."),
    "rank": Entry("Ask", "Rank several sites for one more job."),
    "explain": Entry("Ask", "Explain why a job waits, and what would change it."),
    "ledger": Entry("Ask", "Show, export or verify recorded decisions and commands."),
    "mode": Entry("Command", "Show the daemon's mode, or lower it immediately."),
    "promote": Entry("Command", "Raise the mode by one step if the evidence allows it."),
    "release": Entry("Command", "Revert Outrider's changes in the batch system."),
    "check-config": Entry("Set up", "Check a configuration file and show what it means."),
    "token": Entry("Set up", "Create the token that admits clients or shows users' names."),
    "install-service": Entry("Set up", "Write the systemd service for a configuration."),
    "doctor": Entry("Set up", "Check everything the daemon needs and suggest fixes."),
    "plugins": Entry("Set up", "List adapters, policies, readers, estimators and utilities."),
    "levers": Entry("Set up", "List what Outrider can change in a batch system."),
    "completion": Entry("Set up", "Print a shell completion script."),
}
"""The core's own commands, in the order of the help."""


class LazyGroup(click.Group):
    """Command group that imports each command when it is used; its help imports none.

    It contains the core's commands and those of installed packages. A broken one reports its error
    when it is used; the others still work.
    """

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names: the core's in the order of the help, then installed ones."""
        return list(dict.fromkeys((*COMMANDS, *installed_commands())))

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command, or None if there is none of that name.

        Raises:
            PluginError: an installed command cannot be loaded.
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
        """Find a command; an unknown name is rejected with the nearest known one."""
        name = args[0]
        is_known = name in COMMANDS or name in installed_commands()
        if not is_known and not name.startswith("-") and not ctx.resilient_parsing:
            right = nearest(name, self.list_commands(ctx))
            raise click.UsageError(f'no command "{name}"; {right}', ctx)
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the commands by section, from their one-line texts alone."""
        entries = {name: entry_of(name) for name in self.list_commands(ctx)}
        for section in dict.fromkeys(entry.section for entry in entries.values()):
            with formatter.section(section):
                formatter.write_dl(
                    [(n, entry.line) for n, entry in entries.items() if entry.section == section]
                )


def entry_of(name: str) -> Entry:
    """Return the help entry of a command without importing it."""
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
    """Outrider runs alongside a batch system: it watches, learns, and suggests better decisions.

    Begin with `outrider demo`; it needs no set-up. `outrider COMMAND --help` explains one command,
    with an example.

    Exit codes:
      0   done
      1   it ran and the answer is no
      2   bad use, configuration or trace
      3   a peer could not be reached
      70  internal error (please report)

    """


keep_lines(outrider)
