"""Listing commands (jobs, machines, users): columns for people, CSV and JSON for programs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from io import StringIO
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

import click
from click.shell_completion import CompletionItem

from outrider.cli.options import json_option
from outrider.cli.printing import echo, print_json
from outrider.cli.terminal import check_watch, print_lines, watch_option
from outrider.model.errors import nearest
from outrider.model.printable import csv_cell, printable_name
from outrider.service.views.sentences import gap_lines

if TYPE_CHECKING:
    from outrider.cli.daemon import DaemonAddress

F = TypeVar("F", bound=Callable[..., Any])
Row = Mapping[str, Any]

_PAGE_ROWS: Final = 5_000
"""Maximum rows of one page of the daemon's answer; a page is also limited in bytes."""


class Column(NamedTuple):
    """One column of a list.

    Attributes:
        head: heading, for people.
        cell: function from a row to its text, for people.
        is_figure: True to right-align the cells.
        value: function from a row to its value, for programs; None: the row's field of that name.
    """

    head: str
    cell: Callable[[Row], str]
    is_figure: bool = False
    value: Callable[[Row], Any] | None = None


class Wanted(NamedTuple):
    """Values of the shared listing options.

    Attributes:
        columns: names, in order; empty: the list's default columns.
        sort: a column's name, with a minus for descending order; None: the daemon's order.
        as_csv: True to print comma-separated values with the columns' names.
        as_json: True to print one JSON document.
        has_header: True to print the headings as the first line.
        watch_s: seconds between two queries; None: query once.
    """

    columns: tuple[str, ...]
    sort: str | None
    as_csv: bool
    as_json: bool
    has_header: bool
    watch_s: float | None


def listing_options(known: Mapping[str, Column]) -> Callable[[F], F]:
    """Return a decorator that adds the listing options, passed as keywords for `wanted`.

    Args:
        known: columns of the list.
    """

    def give(command: F) -> F:
        return table_options(lambda _: known)(json_option(watch_option(command)))

    return give


def table_options(
    columns: Callable[[click.Context], Iterable[str]],
) -> Callable[[F], F]:
    """Return a decorator that adds the table options: columns, sort order and CSV.

    Args:
        columns: function from the words on the command line so far to the columns' names.
    """

    def complete_columns(
        ctx: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the last column name; earlier names stay and are not offered again."""
        before, comma, last = incomplete.rpartition(",")
        taken = before.split(",")
        return [
            CompletionItem(f"{before}{comma}{name}")
            for name in columns(ctx)
            if name.startswith(last) and name not in taken
        ]

    def complete_sort(
        ctx: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """Complete the sort column; a word that begins with a minus is taken for an option."""
        return [CompletionItem(name) for name in columns(ctx) if name.startswith(incomplete)]

    options = (
        click.option(
            "-o", "--columns", metavar="NAME,...", shell_complete=complete_columns,
            help="Columns to print, in this order.",
        ),
        click.option(
            "--sort", metavar="NAME", shell_complete=complete_sort,
            help="Sort by this column; -NAME sorts in descending order.",
        ),
        click.option("--csv", "as_csv", is_flag=True, help="Print CSV for programs."),
        click.option(
            "--no-header", is_flag=True, help="Leave out the line with the names of the columns."
        ),
    )  # fmt: skip

    def give(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return give


def wanted(known: Mapping[str, Column], words: dict[str, Any]) -> Wanted:
    """Return the checked values of the listing options.

    Raises:
        click.UsageError: an unknown column, or options that exclude each other.
    """
    names = tuple(name.strip() for name in (words["columns"] or "").split(",") if name.strip())
    sort = words["sort"]
    for name in (*names, *([sort.removeprefix("-")] if sort else [])):
        if name not in known:
            near = nearest(name, known)
            every = "" if near.startswith("known: ") else f" Columns: {', '.join(known)}"
            raise click.UsageError(f'no column "{name}"; {near}{every}')
    as_csv, as_json, watch_s = words["as_csv"], words["as_json"], words.get("watch_s")
    if as_csv and as_json:
        raise click.UsageError("--csv and --json: use one of them")
    check_watch(watch_s, as_csv or as_json)
    return Wanted(names, sort, as_csv, as_json, not words["no_header"], watch_s)


def every_row(
    address: "DaemonAddress", path: str, field: str, most: int | None = None, **query: str
) -> tuple[list[Row], dict[str, Any]]:
    """Return all rows of a list that the daemon sends in pages, or the first ones.

    Args:
        address: address of the daemon.
        path: path of the list.
        field: field of an answer that contains the rows.
        most: maximum number of rows; None: all.
        query: query parameters that filter and sort the list.

    Returns:
        The rows, and the other fields of the last answer.
    """
    from urllib.parse import quote

    rows: list[Row] = []
    after: int | str | None = None
    asked = "".join(f"&{name}={quote(value, safe='')}" for name, value in query.items())
    while True:
        further = "" if after is None else f"&after={quote(str(after), safe='')}"
        limit = _PAGE_ROWS if most is None else min(_PAGE_ROWS, most - len(rows))
        answer = address.ask(f"{path}?limit={limit}{asked}{further}")
        rows += answer.pop(field)
        after = answer.pop("next")
        if after is None or len(rows) == most:
            return rows, answer


def print_list(
    name: str,
    known: Mapping[str, Column],
    shown: Sequence[str],
    asked: Wanted,
    look: Callable[[], tuple[list[Row], dict[str, Any]]],
    most: int | None = None,
) -> None:
    """Print a list as the options request, once or periodically.

    Args:
        name: name of the rows in JSON.
        known: columns of the list.
        shown: names of the default columns for people.
        asked: values of the listing options.
        look: function that queries the rows, and the other fields of the answer.
        most: maximum number of rows to print; None: all.
    """
    columns = asked.columns or tuple(shown)

    def current_rows() -> tuple[list[Row], dict[str, Any]]:
        rows, rest = look()
        by = asked.sort
        in_order = _sorted(rows, known[by.removeprefix("-")], by) if by else rows
        return list(in_order[:most]), rest

    def lines() -> Iterator[str]:
        shown_columns = [known[one] for one in columns]
        rows, rest = current_rows()
        if asked.watch_s is not None:  # the screen is redrawn
            yield from gap_lines(rest)
        else:
            say_gaps(rest)
        yield from text_lines(rows, shown_columns, asked.has_header)

    def say_gaps(rest: dict[str, Any]) -> None:
        for line in gap_lines(rest):
            echo(f"outrider: {line}", err=True)

    if asked.as_json:
        rows, rest = current_rows()
        print_json({**rest, name: rows})
    elif asked.as_csv:
        rows, rest = current_rows()
        say_gaps(rest)
        echo(csv_text(rows, columns, known, asked.has_header), nl=False)
    else:
        print_lines(lines, asked.watch_s)


def text_lines(rows: Sequence[Row], columns: Sequence[Column], has_header: bool) -> Iterator[str]:
    """Yield one line per row, with aligned columns and never folded (a pipe reads rows)."""
    table = [[printable_name(column.cell(row)) for column in columns] for row in rows]
    if has_header:
        table.insert(0, [column.head for column in columns])
    widths = [max(map(len, cells)) for cells in zip(*table, strict=True)]
    for cells in table:
        placed = (
            cell.rjust(width) if column.is_figure else cell.ljust(width)
            for cell, width, column in zip(cells, widths, columns, strict=True)
        )
        yield "  ".join(placed).rstrip()


def _value(row: Row, name: str, column: Column) -> Any:
    return row[name] if column.value is None else column.value(row)


def _sorted(rows: list[Row], column: Column, sort: str) -> list[Row]:
    """Return the rows sorted by a column; unknown values come last in either direction."""
    name = sort.removeprefix("-")
    known = [row for row in rows if _value(row, name, column) is not None]
    unknown = [row for row in rows if _value(row, name, column) is None]
    known.sort(key=lambda row: _value(row, name, column), reverse=sort.startswith("-"))
    return known + unknown


def csv_text(
    rows: Sequence[Row], columns: Sequence[str], known: Mapping[str, Column], has_header: bool
) -> str:
    """Return rows as comma-separated values, one per line; unknown values are empty."""
    import csv

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if has_header:
        writer.writerow(columns)
    writer.writerows([csv_cell(_value(row, name, known[name])) for name in columns] for row in rows)
    return text.getvalue()
