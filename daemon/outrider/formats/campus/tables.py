"""CSV tables of a campus, read into columns: fast if valid, row by row otherwise.

Two passes give the same columns. The fast one lets numpy parse the whole file; its result is used
only if every check on its columns passes. Otherwise the precise one reads row by row, and names
the first bad row or skips and counts bad rows. So the fast pass never changes what is accepted.
"""

import csv
import gzip
import io
import zlib
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from math import inf, nan
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from outrider.model.errors import TraceError, nearest

Columns: TypeAlias = dict[str, Any]
"""Values by column name: a list of str, or a float64 array with nan for empty."""

Row: TypeAlias = dict[str, Any]
"""Row with one value by column name: str, or float with nan for empty."""

_GZIP_MAGIC: Final = b"\x1f\x8b"
_TEXT_WIDTHS: Final = (24, 96)


class Column(NamedTuple):
    """Column of text or numbers; `empty` says what an empty number means where it is allowed."""

    name: str
    number: bool = False
    empty: str = ""

    @property
    def may_be_empty(self) -> bool:
        """True if a number may be missing."""
        return bool(self.empty)


class Fault(NamedTuple):
    """Fault of a row: a `reason` to count by, the column, and what is expected."""

    reason: str
    column: str
    right: str


class TableKind(NamedTuple):
    """Kind of table with its columns and rules.

    Attributes:
        name: file name without ``.gz``.
        columns: the required columns, in the order in which they are written.
        is_valid: whether all rows of the columns are valid; vectorised. Called with those that
            the file has.
        new_check: makes a function that returns the fault of a row, or None. Call it with the
            rows in order: it remembers names to find duplicates.
        optional: columns that a file may lack.
    """

    name: str
    columns: Sequence[Column]
    is_valid: Callable[[Columns], bool]
    new_check: Callable[[], Callable[[Row], Fault | None]]
    optional: Sequence[Column] = ()

    def columns_of(self, header: Sequence[str]) -> list[Column]:
        """Return the required columns, and the optional ones that a file has."""
        return [*self.columns, *(column for column in self.optional if column.name in header)]


def read_table(folder: Path, kind: TableKind, skipped: Counter[str] | None) -> Columns:
    """Read a table, plain or gzipped. Optional columns that the file lacks are not in the result.

    Args:
        folder: holds the file.
        kind: the columns and rules of the table.
        skipped: None to refuse a bad row; otherwise bad rows are left out and counted here, by
            ``file: reason``.

    Raises:
        TraceError: missing file, missing column, or a bad row; names line, column, value.
    """
    path, data = load(folder, kind.name)
    try:
        columns = _read_fast(data, kind)
    except ValueError:  # numpy could not parse it
        columns = None
    if columns is not None and kind.is_valid(columns):
        return columns
    return _read_precisely(path, data, kind, skipped)


def load(folder: Path, name: str) -> tuple[Path, bytes]:
    """Return the path and content of a file of a campus, unpacked if it is gzipped.

    Raises:
        TraceError: it is missing, there both plain and gzipped, unreadable or damaged.
    """
    found = [path for path in (folder / name, folder / f"{name}.gz") if path.exists()]
    if not found:
        raise TraceError(f"{folder}: no {name} (or {name}.gz); a campus needs one")
    if len(found) > 1:
        raise TraceError(f"{folder}: both {name} and {name}.gz are there; keep one of them")
    try:
        data = found[0].read_bytes()
        return found[0], gzip.decompress(data) if data.startswith(_GZIP_MAGIC) else data
    except (OSError, EOFError, zlib.error) as error:
        raise TraceError(f"{found[0]}: cannot be read: {error}") from error


def _read_fast(data: bytes, kind: TableKind) -> Columns | None:
    """Parse columns with numpy; None if the header is wrong or a text is too wide."""
    if b"\0" in data or b'"' in data:
        return None  # numpy drops trailing NULs and forgives quotes that never close
    for width in _TEXT_WIDTHS:
        lines = _lines(data)
        header = next(lines, "").rstrip("\r\n").split(",")
        first = next((line for line in lines if line.strip()), None)
        if first is None or not _holds(header, kind):
            return None
        known = {column.name: column for column in kind.columns_of(header)}
        dtype = []
        for position, name in enumerate(header):
            column = known.get(name)
            text = column is None or not column.number or column.may_be_empty
            kept = name if column else f"unused {position}"
            dtype.append((kept, (f"S{width}" if column else "S1") if text else "f8"))
        table = np.loadtxt(_chain(first, lines), dtype, delimiter=",", comments=None, ndmin=1)
        columns = {
            column.name: _column(table[column.name], column, width) for column in known.values()
        }
        if all(values is not None for values in columns.values()):
            return columns
    return None


def _column(values: Any, column: Column, width: int) -> Any:
    """Return a parsed column as str list or floats; None if a text may be cut at `width`."""
    if column.number and not column.may_be_empty:
        return np.ascontiguousarray(values)
    packed = np.ascontiguousarray(values)
    if bool(packed.view(np.uint8).reshape(len(packed), width)[:, -1].any()):
        return None
    if not column.number:
        return b"\0".join(packed.tolist()).decode("latin-1").split("\0")
    empty = packed == b""
    numbers = np.full(len(packed), nan)
    numbers[~empty] = packed[~empty].astype(np.float64)
    if bool(np.isnan(numbers[~empty]).any()):
        raise ValueError("nan is written out")
    return numbers


def _read_precisely(
    path: Path, data: bytes, kind: TableKind, skipped: Counter[str] | None
) -> Columns:
    """Read columns row by row; this pass defines what is accepted."""
    reader = csv.reader(_text_lines(path, data), strict=True)
    gathered: dict[str, list[Any]] = {}
    find_fault = kind.new_check()
    try:
        header = next(reader, [])
        _check_header(path, header, kind)
        places = {column: header.index(column.name) for column in kind.columns_of(header)}
        gathered = {column.name: [] for column in places}
        for fields in reader:
            if not fields or (len(fields) == 1 and not fields[0].strip()):
                continue
            row, fault = _parse(fields, header, places)
            fault = fault or find_fault(row)
            if fault is None:
                for name, values in gathered.items():
                    values.append(row[name])
            elif skipped is None:
                raise TraceError(_say(path, reader.line_num, fault, fields, header))
            else:
                skipped[f"{kind.name}: {fault.reason}"] += 1
    except csv.Error as error:
        raise TraceError(f"{path}: line {reader.line_num}: not CSV: {error}") from error
    return {
        column.name: np.array(gathered[column.name], dtype=np.float64)
        if column.number
        else gathered[column.name]
        for column in places
    }


def _parse(
    fields: list[str], header: list[str], places: dict[Column, int]
) -> tuple[Row, Fault | None]:
    if len(fields) != len(header):
        return {}, Fault("wrong number of fields", "", f"{len(header)} fields")
    row: Row = {}
    for column, place in places.items():
        text = fields[place]
        row[column.name] = value = _number(text, column) if column.number else text
        if value is None:
            empty = f", or nothing for {column.empty}" if column.may_be_empty else ""
            return row, Fault("not a number", column.name, f"a number{empty}")
    return row, None


def _number(text: str, column: Column) -> float | None:
    """Return the number; nan for an empty field where allowed; None for anything else."""
    if column.may_be_empty and not text:
        return nan
    try:
        value = float(text)
    except ValueError:
        return None
    return value if -inf < value < inf and "_" not in text else None


def _say(path: Path, line: int, fault: Fault, fields: list[str], header: list[str]) -> str:
    if not fault.column:
        return f"{path}: line {line}: {fault.reason}: {len(fields)}; expected {fault.right}"
    value = fields[header.index(fault.column)]
    return (
        f'{path}: line {line}, column "{fault.column}": {fault.reason}: "{value}"; '
        f"expected {fault.right}"
    )


def _check_header(path: Path, header: list[str], kind: TableKind) -> None:
    for column in kind.columns_of(header):
        if header.count(column.name) == 1:
            continue
        fault = "twice" if column.name in header else "missing"
        known = {c.name for c in (*kind.columns, *kind.optional)}
        others = [name for name in header if name not in known]
        near = f" (found {', '.join(others)}: {nearest(column.name, others)})" if others else ""
        wanted = ",".join(c.name for c in kind.columns)
        raise TraceError(
            f'{path}: line 1: column "{column.name}" is {fault}{near}; expected "{wanted}"'
        )


def _holds(header: list[str], kind: TableKind) -> bool:
    return len(set(header)) == len(header) and all(c.name in header for c in kind.columns)


def _chain(first: str, rest: Iterator[str]) -> Iterator[str]:
    yield first
    yield from rest


def _lines(data: bytes) -> Iterator[str]:
    return iter(io.TextIOWrapper(io.BytesIO(data), encoding="utf-8-sig", newline=""))


def _text_lines(path: Path, data: bytes) -> Iterator[str]:
    try:
        yield from _lines(data)
    except UnicodeDecodeError as error:
        raise TraceError(
            f"{path}: byte 0x{error.object[error.start]:02x} is not UTF-8; expected UTF-8 text"
        ) from error
