"""Output of commands: text, JSON for programs, tables for people."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click

from outrider.model.printable import printable


def echo(text: str = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text, with what would steer a terminal spelled out: all commands print by this."""
    click.echo(printable(text), err=err, nl=nl)  # noqa: TID251 - the one place


def print_json(value: Any) -> None:
    """Print one JSON document; NaN and infinite values become null."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)
    echo(text.decode())


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, figures: bool = True
) -> None:
    """Print a table under its title.

    Args:
        title: one line.
        columns: headings.
        rows: cells as text.
        figures: True if all columns but the first hold figures, and are right-aligned.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    echo(title)
    table = Table(box=SIMPLE_HEAD, show_header=any(columns))
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if number and figures else "left"
        table.add_column(Text(column), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(printable(cell)) for cell in row))
    Console(highlight=False).print(table)


def shown(path: object) -> str:
    """Return a path as printable text; bytes that are not text are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()
