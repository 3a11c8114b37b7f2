"""Parts of the lab's pages besides prose and tables: charts, claims, failed runs."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import isfinite
from typing import Any, Final, NamedTuple

from markupsafe import Markup

from outrider.report.rendering import Templates, heading, made_by, page, prose, table
from outrider_lab.reporting.claims import NOT_COMPARABLE, Verdict, in_words, region, rule

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
    """Return the table that ends a page: everything that was measured."""
    yield heading("All rows")
    yield table(columns, rows)


def drawing(one: Drawing) -> Markup:
    """Return a chart with its caption; read aloud, it is its title."""
    rest = Markup(one.svg.removeprefix("<svg"))  # noqa: S704 - drawn here, by the chart library
    return _TEMPLATES.piece("drawing", one.title, one.caption, rest)


def failed_runs(failed: Sequence[Mapping[str, str]]) -> Iterator[Markup]:
    """Return the runs that failed, each with its error; nothing if none did."""
    if failed:
        yield heading("Runs that failed")
        yield table(("run", "error"), [(one["run"], one["error"]) for one in failed])


def claims_table(claims: Iterable[Mapping[str, Any]]) -> Markup:
    """Return claims, each with what was measured and the verdict."""
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
    """Return a figure to three digits; a dash where there is none."""
    if value is None or not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"


# -- paper page ------------------------------------------------------------------------------------
# The HTML page of a paper's reproduction: the same parts, in the same order, for every paper.

Result = Mapping[str, Any]
"""Result of `outrider_lab.running.run_all.run_study`, with at least one row."""


class PaperPage(NamedTuple):
    """Specific parts of the page of a paper; `html` renders the page of a result.

    Attributes:
        title: of the page.
        cited: the paper, as one cites it.
        quick: what a quick run is, in words.
        how: paragraphs on how it was measured, from the settings of the result.
        drawings: every figure.
        tables: what comes after the figures, HTML already.
    """

    title: str
    cited: str
    quick: str
    how: Callable[[Mapping[str, Any]], Iterable[str]]
    drawings: Callable[[Result], Iterable[Drawing]]
    tables: Callable[[Result], Iterable[Markup]]

    def html(self, result: Result) -> str:
        """Return the page, from the result alone."""
        return page(self.title, self._parts(result))

    def _parts(self, result: Result) -> Iterator[Markup]:
        settings = result["settings"]
        yield prose(self.cited)
        if settings["quick"]:
            yield prose(f"This is a quick run: {self.quick}.")
        yield heading("How it was measured")
        yield from map(prose, self.how(settings))
        yield heading("Claims")
        yield prose(f"{in_words(result['verdicts'])}. {rule()}")
        yield claims_table(result["claims"])
        yield heading("Figures")
        yield from map(drawing, self.drawings(result))
        yield from self.tables(result)
        yield from failed_runs(result["failed"])
        yield from made_by(result)
