"""Rows of a result as comma separated values, for spreadsheets."""

import csv
import json
from collections.abc import Iterator, Mapping, Sequence
from io import StringIO
from typing import Any

from outrider.model.printable import csv_cell


def rows_as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return a line for each row, under the names of all their fields; missing fields are empty.

    Args:
        rows: as JSON has them. The field ``mean`` of a field ``wait_s`` is the column
            ``wait_s_mean``; a list stands in its cell as JSON.
    """
    flat = [dict(_fields("", row)) for row in rows]
    text = StringIO()
    columns = list(dict.fromkeys(name for row in flat for name in row))
    writer = csv.DictWriter(text, columns, lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: csv_cell(v) for name, v in row.items()} for row in flat)
    return text.getvalue()


def _fields(before: str, row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, Mapping):
            yield from _fields(f"{before}{name}_", value)
        else:
            yield f"{before}{name}", json.dumps(value) if isinstance(value, list) else value


# -- apart -----------------------------------------------------------------------------------------
# Rows apart from variants: what scripts may find by the fields that are promised, and the rest.


def set_apart(result: dict[str, Any]) -> dict[str, Any]:
    """Return a reproduction's result as it is printed and written.

    Args:
        result: whose rows say by `plain` whether the promised fields name all that makes them what
            they are; not so for other settings than the policy's own, another shape of utility.

    Returns:
        The same with the others under `variants`, so that no two of `rows` look alike.
    """
    rows = result["rows"]
    return result | {
        "rows": [row for row in rows if row["plain"]],
        "variants": [row for row in rows if not row["plain"]],
    }
