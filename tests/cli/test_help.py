"""The help teaches: what for, an example, units."""

from collections.abc import Iterator

import click
import pytest

from outrider.cli.root import entry_of
from outrider.cli.root import outrider as root
from tests.cli.running import outrider


def all_commands() -> Iterator[tuple[str, click.Command]]:
    context = click.Context(root)
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        assert command is not None
        yield name, command
        if isinstance(command, click.Group):
            visible = {n: c for n, c in command.commands.items() if not c.hidden}
            yield from ((f"{name} {part}", inner) for part, inner in visible.items())


@pytest.mark.parametrize("name", root.list_commands(click.Context(root)))
def test_the_line_in_the_list_is_the_first_line_of_the_help(name: str) -> None:
    command = root.get_command(click.Context(root), name)
    assert command is not None
    assert (command.help or "").splitlines()[0].startswith(entry_of(name).line.rstrip("."))


@pytest.mark.parametrize(("name", "command"), list(all_commands()))
def test_every_help_has_an_example_that_stands_in_lines_of_its_own(
    name: str, command: click.Command
) -> None:
    done = outrider(*name.split(), "--help")
    assert done.code == 0
    lines = [line.strip() for line in done.out.splitlines()]
    example = lines[lines.index("Example:") + 1]
    assert example.startswith(("outrider ", "sudo -u outrider outrider ")), example


@pytest.mark.parametrize(("name", "command"), list(all_commands()))
def test_every_option_is_explained(name: str, command: click.Command) -> None:
    unexplained = [
        param.name
        for param in command.params
        if isinstance(param, click.Option) and not (param.hidden or param.help)
    ]
    assert unexplained == []
