"""The reference page of the commands, made from their own help.

``python -m outrider.cli.reference`` in the root of a checkout writes it again.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

import click

from outrider.cli.root import COMMANDS, outrider

PAGE: Final = Path("docs/reference/commands.md")
_WIDTH: Final = 100
_HEAD: Final = """\
# Commands

What `outrider COMMAND --help` says; this page is made from it. Results go to standard output,
progress (on a terminal only), warnings and errors to standard error.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it ran and the answer is no: a job nobody knows, a ledger that is not whole, a broken plugin |
| 2 | bad use, configuration or trace; one line says what and what would be right |
| 3 | a peer could not be reached |
| 70 | a fault of Outrider's own; `OUTRIDER_TRACEBACK=1` shows where it happened |
| 130 | interrupted (Ctrl-C) |
| 141 | whoever read the output has gone (`| head`) |
"""


def commands_page() -> str:
    """The page."""
    root = click.Context(outrider, info_name="outrider", max_content_width=_WIDTH)
    return "\n".join([_HEAD, *_sections(root)]).rstrip() + "\n"


def _sections(root: click.Context) -> Iterator[str]:
    for name in COMMANDS:
        command = outrider.get_command(root, name)
        if command is None:
            raise LookupError(name)
        yield from _section(command, name, root, "##")


def _section(command: click.Command, name: str, parent: click.Context, mark: str) -> Iterator[str]:
    context = click.Context(
        command, info_name=name, parent=parent, terminal_width=_WIDTH,
        help_option_names=["-h", "--help"],
    )  # fmt: skip
    yield f"{mark} {context.command_path}\n"
    yield f"```text\n{command.get_help(context)}\n```\n"
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            if inner is not None and not inner.hidden:
                yield from _section(inner, part, context, f"{mark}#")


if __name__ == "__main__":
    PAGE.write_text(commands_page(), encoding="utf-8")
