"""What the lab's pages have beside prose and tables: charts, claims, failed runs."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from outrider.report.page import heading, table
from outrider.report.rendering import Templates
from outrider_lab.reporting.claims import region
from outrider_lab.reporting.verdicts import NOT_COMPARABLE, Verdict

_TEMPLATES: Final = Templates("outrider_lab.reporting")
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


def all_rows(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[Markup]:
    """The table that ends a page: everything that was measured."""
    yield heading("All rows")
    yield table(columns, rows)


def drawing(one: Drawing) -> Markup:
    """A chart with its caption; read aloud, it is its title."""
    rest = Markup(one.svg.removeprefix("<svg"))  # noqa: S704 - drawn here, by the chart library
    return _TEMPLATES.piece("drawing", one.title, one.caption, rest)


def failed_runs(failed: Sequence[Mapping[str, str]]) -> Iterator[Markup]:
    """The runs that failed, each with its error; nothing if none did."""
    if failed:
        yield heading("Runs that failed")
        yield table(("run", "error"), [(one["run"], one["error"]) for one in failed])


def claims_table(claims: Iterable[Mapping[str, Any]]) -> Markup:
    """Claims, each with what was measured and the verdict."""
    columns = ("claim", "where", "the paper", "measured here", "expected", "verdict")
    return _TEMPLATES.piece("claims", columns, [_claim_row(one) for one in claims])


def _claim_row(one: Mapping[str, Any]) -> dict[str, Any]:
    low, high = one["interval"] or (None, None)
    measured = f"{one['statistic']}: {shown(one['measured'])}"
    if low is not None:
        measured += f" (95 %: {shown(low)} to {shown(high)})"
    expected = "-" if one["expected"] is None else region(*one["expected"])
    return {
        "words": (one["claim"], one["where"], one["paper"], measured, expected),
        "verdict": one["verdict"],
        "look": _LOOKS[one["verdict"]],
        "why": one["why"],
    }


def shown(value: float | None) -> str:
    """A figure to three digits; a dash where there is none."""
    if value is None or not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
