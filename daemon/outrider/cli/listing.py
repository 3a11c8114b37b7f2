"""Lists of what the daemon knows now: columns for people, CSV and JSON for programs, in one way."""

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

if TYPE_CHECKING:
    from outrider.cli.daemon import DaemonAddress

F = TypeVar("F", bound=Callable[..., Any])
Row = Mapping[str, Any]

_PAGE_ROWS: Final = 5_000
"""Most that the daemon gives at once; a page is bounded in bytes, too."""


class Column(NamedTuple):
    """One column of a list.

    Attributes:
        head: above it, for people.
        cell: of a row, as text for people.
        is_figure: flush right.
        value: of a row, for programs; None: the row's own under the column's name.
    """

    head: str
    cell: Callable[[Row], str]
    is_figure: bool = False
    value: Callable[[Row], Any] | None = None


class Wanted(NamedTuple):
    """What the shared options ask for.

    Attributes:
        columns: names, in order; none: those of the list.
        sort: a column's name, with a minus for the greatest first; None: as the daemon tells them.
        as_csv: comma separated values with the columns' names.
        as_json: one document.
        has_header: a line with the heads comes first.
        watch_s: seconds until it is asked again; None: once.
    """

    columns: tuple[str, ...]
    sort: str | None
    as_csv: bool
    as_json: bool
    has_header: bool
    watch_s: float | None


def listing_options(known: Mapping[str, Column]) -> Callable[[F], F]:
    """Gives a command the options of lists; they come as keywords for `wanted`.

    Args:
        known: its columns.
    """

    def give(command: F) -> F:
        return table_options(lambda _: known)(json_option(watch_option(command)))

    return give


def table_options(
    columns: Callable[[click.Context], Iterable[str]],
) -> Callable[[F], F]:
    """Gives a command the options of any table: which columns, by which sorted, and CSV.

    Args:
        columns: names of the columns, by the words that are on the command line so far.
    """

    def complete_columns(
        ctx: click.Context, _: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The last of the columns; those before it stay, and are not offered again."""
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
        """The column to sort by; a word that begins with a minus is taken for an option."""
        return [CompletionItem(name) for name in columns(ctx) if name.startswith(incomplete)]

    options = (
        click.option(
            "-o", "--columns", metavar="NAME,...", shell_complete=complete_columns,
            help="These columns, in this order.",
        ),
        click.option(
            "--sort", metavar="NAME", shell_complete=complete_sort,
            help="By this column; -NAME: the greatest first.",
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
    """What the options say, checked.

    Raises:
        click.UsageError: a column that is not there, or options that exclude each other.
    """
    names = tuple(name.strip() for name in (words["columns"] or "").split(",") if name.strip())
    sort = words["sort"]
    for name in (*names, *([sort.removeprefix("-")] if sort else [])):
        if name not in known:
            near = nearest(name, known)
            every = "" if near.startswith("known: ") else f" The columns: {', '.join(known)}"
            raise click.UsageError(f'no column "{name}"; {near}{every}')
    as_csv, as_json, watch_s = words["as_csv"], words["as_json"], words.get("watch_s")
    if as_csv and as_json:
        raise click.UsageError("--csv and --json exclude each other")
    check_watch(watch_s, as_csv or as_json)
    return Wanted(names, sort, as_csv, as_json, not words["no_header"], watch_s)


def every_row(
    address: "DaemonAddress", path: str, field: str, most: int | None = None, **query: str
) -> tuple[list[Row], dict[str, Any]]:
    """All rows of a list that the daemon gives in pages, or the first of them.

    Args:
        address: the daemon's.
        path: of the list.
        field: under which an answer has its rows.
        most: so many of the first; None: all.
        query: what narrows and sorts it.

    Returns:
        The rows, and what else stood in the last answer.
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
    """Print a list as it is wanted, once or again and again.

    Args:
        name: of its rows, in JSON.
        known: its columns.
        shown: names of those that people see if they do not say.
        asked: what is wanted.
        look: asks for the rows, and for what else is said of them.
        most: so many of the first are printed; None: all.
    """
    columns = asked.columns or tuple(shown)

    def rows_told() -> tuple[list[Row], dict[str, Any]]:
        rows, told = look()
        by = asked.sort
        in_order = _sorted(rows, known[by.removeprefix("-")], by) if by else rows
        return list(in_order[:most]), told

    def lines() -> Iterator[str]:
        shown_columns = [known[one] for one in columns]
        return text_lines(rows_told()[0], shown_columns, asked.has_header)

    if asked.as_json:
        rows, told = rows_told()
        print_json({**told, name: rows})
    elif asked.as_csv:
        echo(csv_text(rows_told()[0], columns, known, asked.has_header), nl=False)
    else:
        print_lines(lines, asked.watch_s)


def text_lines(rows: Sequence[Row], columns: Sequence[Column], has_header: bool) -> Iterator[str]:
    """Lines as wide as they have to be: what reads them from a pipe finds a row in each."""
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
    """What is unknown comes last, whichever way round."""
    name = sort.removeprefix("-")
    known = [row for row in rows if _value(row, name, column) is not None]
    unknown = [row for row in rows if _value(row, name, column) is None]
    known.sort(key=lambda row: _value(row, name, column), reverse=sort.startswith("-"))
    return known + unknown


def csv_text(
    rows: Sequence[Row], columns: Sequence[str], known: Mapping[str, Column], has_header: bool
) -> str:
    """Rows as comma separated values, a line each; what is not known is empty."""
    import csv

    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    if has_header:
        writer.writerow(columns)
    writer.writerows([csv_cell(_value(row, name, known[name])) for name in columns] for row in rows)
    return text.getvalue()
