"""Reference page of the commands, generated from their help."""

import inspect
from collections.abc import Iterator
from typing import Final

import click

from outrider.cli.root import outrider

_HEAD: Final = """\
# Commands

This page is generated from `outrider COMMAND --help`. Results go to standard output. Progress (on a
terminal only), warnings and errors go to standard error.

| exit code | meaning |
|---|---|
| 0 | done |
| 1 | it ran and the answer is no: an unknown job, a damaged journal, a broken plugin |
| 2 | bad use, configuration or trace; one line shows the error and what is expected |
| 3 | a peer could not be reached |
| 70 | internal error (please report); `OUTRIDER_TRACEBACK=1` shows where it happened |
| 130 | interrupted (Ctrl-C) |
| 141 | the reader of the output closed it (`head`) |
"""


def commands_page() -> str:
    """Return the page in Markdown."""
    root = click.Context(outrider, info_name="outrider")
    return "\n".join([_HEAD, *_sections(root)]).rstrip() + "\n"


def _sections(root: click.Context) -> Iterator[str]:
    for name in outrider.list_commands(root):
        command = outrider.get_command(root, name)
        if command is None:
            raise LookupError(name)
        yield from _section(command, name, root, "##")


def _section(command: click.Command, name: str, parent: click.Context, mark: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    words = [p.metavar or "" for p in command.params if isinstance(p, click.Argument)]
    yield f"{mark} {' '.join([context.command_path, *words])}\n"
    yield from _paragraphs(inspect.cleandoc(command.help or ""))
    options = [p for p in command.params if isinstance(p, click.Option) and not p.hidden]
    if options:
        yield "| option | meaning |"
        yield "|---|---|"
        yield from map(_row, options)
        yield ""
    if isinstance(command, click.Group):
        for part in command.list_commands(context):
            inner = command.get_command(context, part)
            if inner is not None and not inner.hidden:
                yield from _section(inner, part, context, f"{mark}#")


def _paragraphs(text: str) -> Iterator[str]:
    """Yield the paragraphs of the help, with examples as code."""
    for paragraph in text.replace("\b\n", "").split("\n\n"):
        head, _, rest = paragraph.partition("\n")
        if head == "Example:":
            yield f"```sh\n{inspect.cleandoc(rest)}\n```\n"
        else:
            yield f"{paragraph}\n"


def _row(option: click.Option) -> str:
    value = f" {option.metavar}" if option.metavar else ""
    names = "/".join([*option.opts, *option.secondary_opts])
    meaning = option.help or ""
    if option.required:
        meaning += " Required."
    if option.show_default:
        meaning += f" [default: {option.default}]"
    return f"| `{names}{value}` | {meaning.strip().replace('|', chr(92) + '|')} |"
