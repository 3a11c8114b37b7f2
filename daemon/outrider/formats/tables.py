"""Tables for other programs: their columns, declared once.

All writers of tables and data frames use these declarations, and so does the reference page.
"""

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import msgspec

from outrider.model.errors import ConfigurationError
from outrider.model.printable import csv_cell

VERSION: Final = 1
"""Version of all tables together: raised when a column goes, or changes type or meaning.

A new column at the end does not raise it.
"""
TEXT: Final = "text"
INTEGER: Final = "integer"
NUMBER: Final = "number"
FLAG: Final = "flag"
TEXTS: Final = "list of text"
NUMBERS: Final = "numbers by name"
Row = Mapping[str, Any]
"""Values by column; a column that is not there is null."""


class Column(NamedTuple):
    """Column of a table: name, kind and description.

    Attributes:
        name: of the column, its unit in the ending (``_s``: seconds).
        kind: one of the kinds above.
        help: its content, with the unit.
        nullable: whether it may be null: not known, or not applicable to the row.
    """

    name: str
    kind: str
    help: str
    nullable: bool = False


class Table(NamedTuple):
    """Table for other programs: name, description and columns.

    Attributes:
        name: the value of ``--rows``.
        help: the content of a row.
        columns: in order.
    """

    name: str
    help: str
    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of its columns, in order."""
        return [column.name for column in self.columns]


class Rows:
    """Rows of a table, which can be read repeatedly.

    Args:
        table: the table of the rows.
        source: starts reading them.
    """

    def __init__(self, table: Table, source: Callable[[], Iterable[Row]]) -> None:
        self.table = table
        self._source = source

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """Yield every row in order, each with every column."""
        names = self.table.names
        for row in self._source():
            yield {name: row.get(name) for name in names}

    def as_they_are(self) -> Iterator[Row]:
        """Yield every row in order, with the columns that it has."""
        return iter(self._source())

    def __repr__(self) -> str:
        return f"<rows of {self.table.name}: {', '.join(self.table.names)}>"


# -- table files -----------------------------------------------------------------------------------
# Rows of a table as a file: JSON lines, CSV or Parquet, by the extension of its name.

JSONL: Final = "jsonl"
CSV: Final = "csv"
PARQUET: Final = "parquet"
FORMATS: Final = (JSONL, CSV, PARQUET)
ENDINGS: Final = {".jsonl": JSONL, ".ndjson": JSONL, ".csv": CSV, ".parquet": PARQUET}
_DUCKDB_TYPES: Final = {
    TEXT: "VARCHAR",
    INTEGER: "BIGINT",
    NUMBER: "DOUBLE",
    FLAG: "BOOLEAN",
    TEXTS: "VARCHAR[]",
    NUMBERS: "MAP(VARCHAR, DOUBLE)",
}
BLOCK_ROWS: Final = 2048
"""Lines written together."""


def format_of(path: Path | None, given: str | None, option: str) -> str:
    """Return the format of a file that is to be written.

    Args:
        path: of the file; None: standard output.
        given: the format that was requested by name; None: none was.
        option: the option that names the file, for messages.

    Raises:
        ConfigurationError: the extension is unknown and no format was given, the extension is that
            of another format, or Parquet would go to standard output.
    """
    if path is None:
        if given == PARQUET:
            raise ConfigurationError(
                f"--format {PARQUET}: is written to a file only; expected {option} FILE.parquet"
            )
        return given or JSONL
    meant = ENDINGS.get(path.suffix)
    if meant is None and given is None:
        raise ConfigurationError(f"{option} {path}: expected it to end in {' or '.join(ENDINGS)}")
    if meant is not None and given is not None and meant != given:
        raise ConfigurationError(
            f"{option} {path}: that is the extension of {meant}, and --format {given} was given; "
            "expected one of them"
        )
    return given or meant or JSONL


def check_file(path: Path, form: str, option: str) -> Any:
    """Check that a file can be written, before a long run; return DuckDB if it is needed.

    Args:
        path: of the file.
        form: from `format_of`.
        option: the option that names the file, for messages.

    Raises:
        ConfigurationError: no such folder, or no DuckDB.
    """
    if not path.parent.is_dir():
        raise ConfigurationError(f"{option} {path}: there is no folder {path.parent}")
    return require_duckdb(option, ".csv or .jsonl") if form == PARQUET else None


def write_rows(rows: Rows, path: Path, form: str, option: str) -> int:
    """Write rows to a file, completely or not at all; return how many.

    Args:
        rows: of any number; they are read once and not kept in memory.
        path: of the file; replaced if it exists.
        form: one of `FORMATS`.
        option: the option that names the file, for messages.

    Raises:
        ConfigurationError: it cannot be written, or Parquet is requested without DuckDB.
    """
    duckdb = check_file(path, form, option)
    part = path.with_name(f".{path.name}.part")
    try:
        if duckdb is not None:
            count = _write_parquet(rows, part, duckdb)
        else:
            with part.open("wb") as file:
                count = stream_rows(rows, file, form)
        part.replace(path)
    except OSError as error:
        raise ConfigurationError(f"{option} {path}: cannot be written: {error.strerror}") from error
    finally:
        part.unlink(missing_ok=True)
    return count


def stream_rows(rows: Rows, out: BinaryIO, form: str) -> int:
    """Write rows as JSON lines or CSV; return how many.

    JSON lines: an object with the columns that a row has; infinite and undefined numbers are null.
    CSV: a header, then the values; null is empty, flags are ``true`` and ``false``, lists and
        numbers
    by name are JSON in their cell.

    Args:
        rows: read once.
        out: a binary stream.
        form: `JSONL` or `CSV`.
    """
    return _stream_csv(rows, out) if form == CSV else _stream_jsonl(rows.as_they_are(), out)


def _stream_jsonl(rows: Iterable[Row], out: BinaryIO) -> int:
    encoder, lines, count = msgspec.json.Encoder(), bytearray(), 0
    for row in rows:
        lines += encoder.encode(row)
        lines += b"\n"
        count += 1
        if count % BLOCK_ROWS == 0:
            out.write(lines)
            lines.clear()
    out.write(lines)
    return count


def _stream_csv(rows: Rows, out: BinaryIO) -> int:
    text = io.TextIOWrapper(out, "utf-8", "backslashreplace", newline="", write_through=True)
    try:
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(rows.table.names)
        count = 0
        for row in rows:
            writer.writerow([csv_cell(_cell(value)) for value in row.values()])
            count += 1
        return count
    finally:
        text.detach()  # the stream is the caller's to close


def _cell(value: Any) -> Any:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict | list | tuple):
        return msgspec.json.encode(value).decode()
    return value


def _write_parquet(rows: Rows, path: Path, duckdb: Any) -> int:
    """Write a Parquet file with DuckDB, from temporary JSON lines next to it."""
    source = path.with_name(f"{path.name}.lines")
    try:
        with source.open("wb") as file:
            count = _stream_jsonl(rows, file)
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * FROM read_json({quoted(str(source))}, "  # noqa: S608 - quoted
                f"format = 'newline_delimited', columns = {{{_types(rows.table)}}})) "
                f"TO {quoted(str(path))} (FORMAT parquet, KV_METADATA "
                f"{{outrider_table: {quoted(rows.table.name)}, outrider_tables: '{VERSION}'}})"
            )
    finally:
        source.unlink(missing_ok=True)
    return count


def _types(table: Table) -> str:
    return ", ".join(f"{quoted(c.name)}: '{_DUCKDB_TYPES[c.kind]}'" for c in table.columns)


def column_values(rows: Rows) -> Iterator[tuple[str, list[Any]]]:
    """Return every column with its values, in order, for data frames."""
    values: list[list[Any]] = [[] for _ in rows.table.columns]
    for row in rows:
        for column, value in zip(values, row.values(), strict=True):
            column.append(value)
    return zip(rows.table.names, values, strict=True)


# -- parquet ---------------------------------------------------------------------------------------
# Parquet files, written by DuckDB, which the extra `reports` installs.


def require_duckdb(option: str, instead: str) -> Any:
    """Return the module `duckdb`. Raises `ConfigurationError` if it is not installed.

    Args:
        option: the option that requests Parquet.
        instead: a file extension that needs no DuckDB.
    """
    try:
        import duckdb
    except ImportError as error:
        raise ConfigurationError(
            f"{option}: Parquet needs duckdb, which is not installed; expected "
            f"pip install 'outrider[reports]', or a file that ends in {instead}"
        ) from error
    return duckdb


def write_parquet(path: Path, rows: Sequence[Mapping[str, Any]], duckdb: Any) -> None:
    """Write rows that all have the same columns, by way of a temporary file next to it.

    Each column gets the type that holds all its values without loss.

    Args:
        path: of the file, replaced if it exists.
        rows: scalars or None by column; at least one row.
        duckdb: from `require_duckdb`.
    """
    types = ", ".join(f"{quoted(name)}: '{_type([row[name] for row in rows])}'" for name in rows[0])
    source = path.with_suffix(".lines")
    source.write_bytes(b"\n".join(map(msgspec.json.encode, rows)))
    try:
        with duckdb.connect() as connection:
            connection.execute(
                f"COPY (SELECT * FROM read_json({quoted(str(source))}, "  # noqa: S608 - quoted
                f"format = 'newline_delimited', columns = {{{types}}})) "
                f"TO {quoted(str(path))} (FORMAT parquet)"
            )
    finally:
        source.unlink()


def quoted(text: str) -> str:
    """Return a name or text quoted for SQL."""
    return "'" + text.replace("'", "''") + "'"


def _type(values: Sequence[Any]) -> str:
    """Return the column type that holds all values without loss; an infinite one is a number."""
    kinds = {float if value == "inf" else type(value) for value in values if value is not None}
    if kinds <= {bool} and kinds:
        return "BOOLEAN"
    if kinds <= {int} and kinds:
        return "BIGINT"
    return "DOUBLE" if kinds <= {int, float} and kinds else "VARCHAR"
