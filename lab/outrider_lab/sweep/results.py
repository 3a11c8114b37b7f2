"""Results of a sweep: one flat row a run, as JSON or Parquet."""

from collections.abc import Iterator, Mapping, Sequence
from math import inf
from pathlib import Path
from typing import Any, Final

import msgspec

from outrider.formats.parquet import require_duckdb, write_parquet
from outrider.model.errors import ConfigurationError, LedgerError

Row = dict[str, Any]
"""Scalars by column name, or None where there is no value."""

FORMATS: Final = (".json", ".parquet")
_FIRST: Final = ("cell", "trace", "policy", "preset", "seed", "error", "attempts", "version")
_SAID: Final = ("truth", "estimates", "discipline", "class_source", "cpus")


def flat(report: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """Every scalar of a report under its path: ``wait_s.all.mean``.

    Lists are left out, except those that are settings: they are there as JSON text.

    >>> dict(flat({"seed": 1, "wait_s": {"all": {"mean": 2.5}}, "by_week": [1, 2]}))
    {'seed': 1, 'wait_s.all.mean': 2.5}
    """
    for name, value in report.items():
        if isinstance(value, Mapping):
            yield from flat(value, f"{path}{name}.")
        elif not isinstance(value, (list, tuple)):
            yield path + name, value
        elif path.startswith("settings."):
            yield path + name, msgspec.json.encode(value).decode()


def check_format(out: Path) -> None:
    """Refuse what could not be written, before a long run.

    Raises:
        ConfigurationError: another ending than `FORMATS`, no such folder, or no duckdb.
    """
    if out.suffix not in FORMATS:
        raise ConfigurationError(f"--out {out}: right would end in {' or '.join(FORMATS)}")
    if not out.parent.is_dir():
        raise ConfigurationError(f"--out {out}: there is no folder {out.parent}")
    if out.suffix == ".parquet":
        _duckdb()


def read_row(line: bytes, place: str) -> Row:
    """A row from its JSON. Raises `LedgerError`, which names the place."""
    try:
        row: Row = msgspec.json.decode(line, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{place}: no row of a sweep: {error}") from error
    return _checked(row, place)


def _checked(row: Row, place: str) -> Row:
    missing = [name for name in _FIRST if name not in row]
    if missing:
        raise LedgerError(f"{place}: no row of a sweep: it has no {', '.join(missing)}")
    return row


def read_rows(out: Path) -> list[Row]:
    """The rows of a file of results. Raises `LedgerError`, `ConfigurationError`."""
    if out.suffix == ".parquet":
        return _read_parquet(out)
    try:
        rows = msgspec.json.decode(out.read_bytes(), type=list[msgspec.Raw])
    except msgspec.MsgspecError as error:
        raise LedgerError(f"{out}: no results of a sweep: {error}") from error
    return [read_row(bytes(row), f"{out} row {n}") for n, row in enumerate(rows, 1)]


def write_rows(out: Path, rows: Sequence[Row]) -> None:
    """Write rows as JSON (a list of objects) or Parquet, by the file's ending.

    Every row has every column. The file is there whole or not at all.
    """
    names = dict.fromkeys(_FIRST) | dict.fromkeys(name for row in rows for name in row)
    columns = sorted(names, key=_place)
    full = [{name: row.get(name) for name in columns} for row in rows]
    part = out.with_name(f".{out.name}.part")
    if out.suffix == ".parquet":
        write_parquet(part, full, _duckdb())
    else:
        lines = map(msgspec.json.encode, full)
        part.write_bytes(b"[\n" + b",\n".join(lines) + b"\n]\n")
    part.replace(out)


def _place(name: str) -> int:
    """Where a column stands: what was run, what was asked and said of it, settings, figures."""
    if name in _FIRST:
        return 0
    if name in _SAID or name.startswith("asked."):
        return 1
    return 2 if name.startswith("settings.") else 3


def _duckdb() -> Any:
    return require_duckdb("--out", ".json")


def _read_parquet(out: Path) -> list[Row]:
    duckdb = _duckdb()
    try:
        with duckdb.connect() as connection:
            found = connection.execute("SELECT * FROM read_parquet(?)", [str(out)])
            names = [column[0] for column in found.description]
            rows = [dict(zip(names, values, strict=True)) for values in found.fetchall()]
    except duckdb.Error as error:
        raise LedgerError(f"{out}: no results of a sweep: {error}") from error
    for row in rows:
        _checked(row, str(out))
        row |= {name: "inf" for name, value in row.items() if value == inf}
    return rows
