"""What goes to standard output: JSON for machines, tables for people."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click

from outrider.model.quantities import MISSING


def print_json(value: Any) -> None:
    """Print one JSON document. What is undefined (nan) or infinite becomes null."""
    import msgspec

    text = msgspec.json.format(msgspec.json.encode(value, enc_hook=str), indent=2)
    click.echo(text.decode())


def print_table(
    title: str, columns: Sequence[str], rows: Iterable[Sequence[str]], *, figures: bool = True
) -> None:
    """Print a table under its title.

    Args:
        title: one line.
        columns: their heads.
        rows: cells as text.
        figures: all columns but the first hold figures, and are flush right.
    """
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    click.echo(title)
    table = Table(box=SIMPLE_HEAD, show_header=any(columns))
    for number, column in enumerate(columns):
        justify: Literal["left", "right"] = "right" if number and figures else "left"
        table.add_column(Text(column), justify=justify, overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console(highlight=False).print(table)


def shown(path: object) -> str:
    """A path as text that can be printed anywhere: bytes that are no text are escaped."""
    return str(path).encode("utf-8", "backslashreplace").decode()


def clock(time_s: float | None, zone: str = "UTC") -> str:
    """A moment of Unix time on a site's wall clock, to the second, or `MISSING`.

    Args:
        time_s: Unix seconds.
        zone: the site's, an IANA name.
    """
    import datetime as dt
    from zoneinfo import ZoneInfo

    if time_s is None:
        return MISSING
    try:
        return f"{dt.datetime.fromtimestamp(time_s, ZoneInfo(zone)):%Y-%m-%d %H:%M:%S %Z}"
    except (OverflowError, ValueError, OSError):
        return f"{time_s:.0f} s"  # no date of any calendar
