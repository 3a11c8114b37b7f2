"""What goes to standard output: JSON for machines, tables and quantities for people."""

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click

MISSING = "-"


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


def count(value: float | None) -> str:
    """A whole number with its thousands set apart, or `MISSING`."""
    return MISSING if value is None else f"{value:,.0f}"


def figure(value: float | None, per: float = 1.0, digits: int = 1) -> str:
    """A number in a unit that holds `per` of its own, or `MISSING`."""
    return MISSING if value is None else f"{value / per:,.{digits}f}"


def ratio(value: float | None) -> str:
    """A ratio as per cent, or `MISSING`."""
    return MISSING if value is None else f"{100 * value:.1f} %"


def duration(seconds: float | None) -> str:
    """A time span in the unit that suits it: ``12 s``, ``3.2 min``, ``5.0 h``, ``2.1 d``."""
    if seconds is None:
        return MISSING
    for unit, size, most in (("s", 1, 120), ("min", 60, 7200), ("h", 3600, 172_800)):
        if abs(seconds) < most:
            return f"{seconds / size:.0f} {unit}" if size == 1 else f"{seconds / size:.1f} {unit}"
    return f"{seconds / 86_400:.1f} d"


def energy(watt_hours: float | None) -> str:
    """An energy in the unit that suits it: ``120 Wh``, ``3.4 kWh``, ``1.2 MWh``."""
    if watt_hours is None:
        return "unknown"
    for unit, size, most in (("Wh", 1, 1e3), ("kWh", 1e3, 1e6)):
        if abs(watt_hours) < most:
            return f"{watt_hours / size:.1f} {unit}"
    return f"{watt_hours / 1e6:.1f} MWh"


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
