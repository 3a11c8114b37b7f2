"""Commands of installed packages: listed without import; a broken one affects no other."""

import os
from pathlib import Path

import pytest

from tests.cli.running import Done, shell
from tests.cli.test_starting_up import imports

GOOD = '''\
"""Say hello to the pool."""

import click

SECTION = "Ask"
print("imported")


@click.command("hello")
def command() -> None:
    """Say hello to the pool."""
    click.echo("hello, pool")
'''


@pytest.fixture
def brought(tmp_path: Path) -> dict[str, str]:
    """The environment in which a distribution with good and broken commands is installed."""
    package = tmp_path / "brought_commands"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "hello.py").write_text(GOOD)
    (package / "broken.py").write_text('"""Fall apart."""\nraise RuntimeError("no wheels")\n')
    (package / "number.py").write_text('"""Be a number."""\ncommand = 7\n')
    information = tmp_path / "brought_commands-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: brought\nVersion: 1.0\n")
    (information / "entry_points.txt").write_text(
        "[outrider.commands]\n"
        "hello = brought_commands.hello:command\n"
        "broken = brought_commands.broken:command\n"
        "number = brought_commands.number:command\n"
        "nowhere = brought_commands.nowhere:command\n"
        "replay = brought_commands.hello:command\n"
    )
    return {"PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])}


def section(help_text: str, name: str) -> str:
    """The part of the help under a head."""
    return help_text.partition(f"\n{name}:\n")[2].partition("\n\n")[0]


def test_the_help_lists_what_packages_bring_without_importing_it(brought: dict[str, str]) -> None:
    done = shell("--help", **brought)
    assert done.code == 0
    assert "imported" not in done.out
    assert "Say hello to the pool." in section(done.out, "Ask")
    assert "Fall apart." in section(done.out, "More")
    assert "brought_commands.nowhere" in section(done.out, "More")


def test_the_help_lists_the_labs_commands_without_importing_the_lab() -> None:
    done = shell("--help")
    for name in ("compare", "drift", "estimate", "reproduce", "sweep", "train"):
        assert f"\n  {name} " in section(f"\n{done.out}", "Judge"), name
    assert "outrider_lab" not in imports("--help")


def test_a_command_that_was_brought_runs(brought: dict[str, str]) -> None:
    done = shell("hello", **brought)
    assert (done.code, done.out.splitlines()[-1]) == (0, "hello, pool")


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("broken", "no wheels"),
        ("number", "is a int; expected a click.Command"),
        ("nowhere", "No module named 'brought_commands.nowhere'"),
    ],
)
def test_a_broken_command_is_named_and_the_others_go_on(
    name: str, why: str, brought: dict[str, str]
) -> None:
    done = shell(name, **brought)
    assert done.code == 2
    assert done.err.startswith(f'outrider: command "{name}" (brought_commands.{name}:command)')
    assert why in done.err
    assert shell("plugins", **brought).out, "a command of the core goes on"


def test_the_cores_own_commands_cannot_be_replaced(brought: dict[str, str]) -> None:
    done: Done = shell("replay", "--help", **brought)
    assert "Say hello" not in done.out
    assert "TRACE" in done.out


def test_an_unknown_word_is_held_against_what_was_brought_too(brought: dict[str, str]) -> None:
    done = shell("helo", **brought)
    assert done.code == 2
    assert 'did you mean "hello"?' in done.err
