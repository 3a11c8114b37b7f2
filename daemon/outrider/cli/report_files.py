"""A report as files: HTML, JSON, CSV; each whole or not at all, for nobody but who wrote them."""

import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from outrider.cli.listing import csv_text
from outrider.cli.report_tables import TABLES, columns_of, rows_of


def write_report(folder: Path, told: Mapping[str, Any]) -> list[Path]:
    """Write all files into a folder, which is made if it is missing; those of old are replaced.

    A page, a document, and each table of `TABLES` that has rows.

    They name users as the journal does, so their mode is 0600.

    Raises:
        OSError: they cannot be written.
    """
    from outrider.report.html import html

    folder.mkdir(parents=True, exist_ok=True)
    begin, end = told["window"]["begin"][:10], told["window"]["end"][:10]
    document = msgspec.json.format(msgspec.json.encode(told, enc_hook=str), indent=2)
    page = html(told).encode("utf-8", "backslashreplace")
    contents = {".html": page, ".json": document + b"\n"}
    for table in TABLES:
        if rows := rows_of(told, table):
            text = csv_text(rows, TABLES[table].columns, columns_of(table), has_header=True)
            contents[f"-{table}.csv"] = text.encode("utf-8", "backslashreplace")
    written = []
    for ending, content in contents.items():
        path = folder / f"outrider-report-{begin}_{end}{ending}"
        _replace(path, content)
        written.append(path)
    return written


def _replace(path: Path, content: bytes) -> None:
    number, part = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)  # of mode 0600
    try:
        with os.fdopen(number, "wb") as file:
            file.write(content)
        Path(part).replace(path)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise
