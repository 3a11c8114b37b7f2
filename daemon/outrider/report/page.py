"""Pieces of HTML pages: one file that needs nothing beside it, readable without scripts."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from markupsafe import Markup

from outrider.report.rendering import Templates

LONGEST: Final = 200
"""Characters of a name that are shown."""
_TEMPLATES: Final = Templates("outrider.report")


def page(title: str, parts: Iterable[Markup]) -> str:
    """The whole page from its parts; one that is no HTML yet would be shown as text."""
    return _TEMPLATES.whole("page.html", title=title, parts=parts)


def name(words: str) -> str:
    """A stranger's name, cut where it is endless; nothing is a dash."""
    return (words if len(words) <= LONGEST else f"{words[:LONGEST]}...") or "-"


def heading(words: str) -> Markup:
    """The heading of a section."""
    return _TEMPLATES.piece("heading", words)


def subheading(words: str) -> Markup:
    """The heading of a part of a section."""
    return _TEMPLATES.piece("subheading", words)


def prose(words: str) -> Markup:
    """A paragraph."""
    return _TEMPLATES.piece("prose", words)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, in_words: int = 1) -> Markup:
    """A table; every column but the first `in_words` holds figures and is flush right."""
    return _TEMPLATES.piece("table", columns, rows, in_words)


def made_by(result: Mapping[str, Any]) -> Iterator[Markup]:
    """How a result was made, from its provenance; nothing where it has none.

    Args:
        result: with version, command, date, and traces (path and sha256 of each).
    """
    if "command" not in result:
        return
    yield heading("How this page was made")
    yield prose(f"Outrider {result['version']}, {result['date']}: {result['command']}")
    for trace in result["traces"]:
        yield prose(f"{trace['path']}: SHA-256 {trace['sha256']}")
