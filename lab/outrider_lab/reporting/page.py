"""What the lab's pages have beside prose and tables: charts, claims, failed runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any, Final, NamedTuple

from outrider.report.page import heading, table
from outrider_lab.reporting.claims import region
from outrider_lab.reporting.verdicts import NOT_COMPARABLE, Verdict

_LOOKS: Final = {
    Verdict.REPRODUCED: "yes",
    Verdict.OUTSIDE: "no",
    Verdict.UNDECIDED: "open",
    Verdict.TOO_SMALL: "open",
    NOT_COMPARABLE: "open",
}


class Drawing(NamedTuple):
    """A chart of the report: which figure it is, what it shows, and the SVG element."""

    title: str
    caption: str
    svg: str


def all_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """The table that ends a page: everything that was measured."""
    yield heading("All rows")
    yield table(columns, rows)


def drawing(one: Drawing) -> str:
    """A chart with its caption; read aloud, it is its title."""
    label = f'<svg role="img" aria-label="{escape(one.title)}"'
    caption = f"<figcaption><b>{escape(one.title)}.</b> {escape(one.caption)}</figcaption>"
    return f"<figure>\n{one.svg.replace('<svg', label, 1)}\n{caption}\n</figure>"


def failed_runs(failed: Sequence[Mapping[str, str]]) -> Iterator[str]:
    """The runs that failed, each with its error; nothing if none did."""
    if failed:
        yield heading("Runs that failed")
        yield table(("run", "error"), [(one["run"], one["error"]) for one in failed])


def claims_table(claims: Iterable[Mapping[str, Any]]) -> str:
    """Claims, each with what was measured and the verdict."""
    columns = ("claim", "where", "the paper", "measured here", "expected", "verdict")
    head = "".join(f"<th>{column}</th>" for column in columns)
    lines = []
    for one in claims:
        low, high = one["interval"] or (None, None)
        measured = f"{one['statistic']}: {shown(one['measured'])}"
        if low is not None:
            measured += f" (95 %: {shown(low)} to {shown(high)})"
        expected = "-" if one["expected"] is None else region(*one["expected"])
        verdict = f'<span class="verdict {_LOOKS[one["verdict"]]}">{one["verdict"]}</span>'
        cells = (one["claim"], one["where"], one["paper"], measured, expected)
        texts = "".join(f"<td>{escape(cell)}</td>" for cell in cells)
        lines.append(f"<tr>{texts}<td>{verdict}<br>{escape(one['why'])}</td></tr>")
    return f'<div class="scroll"><table><tr>{head}</tr>\n{"".join(lines)}</table></div>'


def shown(value: float | None) -> str:
    """A figure to three digits; a dash where there is none."""
    if value is None or not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
