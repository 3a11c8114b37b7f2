"""Results of a sweep as tables for people and as a chart."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outrider.cli.printing import echo, print_table
from outrider.model.quantities import MISSING, count, figure
from outrider.simulation.estimates import in_words

_COLUMNS = ("", "mean", "pairs", "difference", "95 % interval", "verdict")
_ORACLE_USED = " (TRUE RUN TIMES USED)"
_WHOLE_FROM = 1000.0


def show_differences(found: Sequence[dict[str, Any]]) -> None:
    """Print the results of `outrider_lab.sweep.results`, a table for each figure."""
    for one in found:
        if len(one["treatments"]) < 2:
            continue
        title = f"{one['figure']}: less that of {one['baseline']}; a pair is {one['unit']}"
        print_table(title, _COLUMNS, [_line(row) for row in one["treatments"]])
        for truth in dict.fromkeys(row["truth"] for row in one["treatments"] if row["truth"]):
            names = [row["treatment"] for row in one["treatments"] if row["truth"] == truth]
            echo(f"{in_words([truth])}: {'; '.join(names)}")


def _line(row: dict[str, Any]) -> list[str]:
    between = MISSING
    if row["interval"] is not None:
        between = " to ".join(map(_number, row["interval"]))
    return [
        row["treatment"] + (" [TRUTH]" if row["truth"] else ""), _number(row["mean"]),
        count(row["pairs"]), _number(row["difference"]), between, row["verdict"] or "baseline",
    ]  # fmt: skip


def _number(value: float | None) -> str:
    """Format a number with two decimals below a thousand, else with none."""
    return figure(value, digits=2 if value is None or abs(value) < _WHOLE_FROM else 0)


def write_chart(file: Path, found: Sequence[dict[str, Any]]) -> None:
    """Draw differences with their intervals as SVG, one chart below the other for each figure."""
    from outrider_lab.reporting.drawing import Spread, interval_chart

    panels = {}
    for one in found:
        uses_oracle = any(
            r["truth"] for r in one["treatments"] if r["treatment"] == one["baseline"]
        )
        other = one["baseline"] + (_ORACLE_USED if uses_oracle else "")
        label = f"{one['figure']} less that of {other}: mean and 95 % interval over pairs"
        panels[f"{label}; a pair is {one['unit']}"] = [
            Spread(
                row["treatment"] + (_ORACLE_USED if row["truth"] else ""),
                row["difference"],
                row["interval"],
                row["pairs"],
            )
            for row in one["treatments"]
            if row["difference"] is not None
        ]
    file.write_text(interval_chart({k: v for k, v in panels.items() if v}), encoding="utf-8")
