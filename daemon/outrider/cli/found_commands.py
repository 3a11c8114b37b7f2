"""Commands that packages bring, found by their entry points and imported when they are used.

An entry point of the group ``outrider.commands`` names a command and where it is:
``compare = "outrider_lab.commands.compare:command"``. The help imports none of them: it reads the
first line of the module's docstring, and its constant `SECTION`, from the source alone.
"""

from functools import cache
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from outrider.model.errors import PluginError

if TYPE_CHECKING:
    import ast
    from importlib.machinery import ModuleSpec
    from importlib.metadata import EntryPoint

GROUP: Final = "outrider.commands"
SECTION: Final = "More"
"""Of the help, for a command whose module names no other."""
_SECTION_NAME: Final = "SECTION"


class Entry(NamedTuple):
    """What the help says of a command: the section in which it stands, and its line."""

    section: str
    line: str


@cache
def found() -> "dict[str, EntryPoint]":
    """The commands that are installed, by name, in the order of their names. Imports none."""
    from importlib.metadata import entry_points

    return {point.name: point for point in sorted(entry_points(group=GROUP))}


def load(name: str) -> click.Command:
    """Import a command that was found.

    Raises:
        PluginError: it cannot be imported, or is no command; the others go on.
    """
    point = found()[name]
    try:
        command = point.load()
    except Exception as error:
        raise PluginError(f'command "{name}" ({point.value}) cannot be loaded: {error}') from error
    if not isinstance(command, click.Command):
        raise PluginError(
            f'command "{name}" ({point.value}) is a {type(command).__name__}; right would be a '
            "click.Command"
        )
    return command


def entry(name: str) -> Entry:
    """What the help says of a command that was found, read from its source.

    A command whose source cannot be read is listed all the same, with the reason.
    """
    import ast

    point = found()[name]
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
