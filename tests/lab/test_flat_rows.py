"""Rows for spreadsheets hold what the JSON holds."""

import csv
from io import StringIO
from typing import Any

from outrider_lab.reporting.flat_rows import rows_as_csv


def test_fields_within_fields_have_columns_and_what_is_not_there_is_empty() -> None:
    rows: list[dict[str, Any]] = [
        {"policy": "fifo", "wait_s": {"mean": 1.5, "se": None}, "settings": {}},
        {"policy": 'a,"b"', "wait_s": {"mean": 2.0, "worst": 3}, "curve": [1, 2.5]},
    ]
    text = rows_as_csv(rows)
    assert list(csv.reader(StringIO(text))) == [
        ["policy", "wait_s_mean", "wait_s_se", "wait_s_worst", "curve"],
        ["fifo", "1.5", "", "", ""],
        ['a,"b"', "2.0", "", "3", "[1, 2.5]"],
    ]


def test_without_rows_there_is_an_empty_head() -> None:
    assert rows_as_csv([]).strip() == ""
