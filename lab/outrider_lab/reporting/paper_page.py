"""The HTML page of a paper's reproduction: the same parts, in the same order, for every paper."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from markupsafe import Markup

from outrider.report.page import heading, made_by, page, prose
from outrider_lab.reporting.page import Drawing, claims_table, drawing, failed_runs
from outrider_lab.reporting.verdicts import in_words, rule

Result = Mapping[str, Any]
"""What `outrider_lab.running.study.run_study` returned, with at least one row."""


class PaperPage(NamedTuple):
    """What is particular about the page of a paper; `html` makes the page of a result.

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
        """The page, from the result alone."""
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
