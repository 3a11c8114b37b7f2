"""A report as one HTML page: prose, tables, charts and claims; it needs nothing beside it."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from math import isfinite
from typing import Any, Final, NamedTuple

from outrider_lab.reporting.claims import region
from outrider_lab.reporting.verdicts import NOT_COMPARABLE, Verdict

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .85rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left;
  vertical-align: top; }
td.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #444; font-size: .9rem; }
.scroll { overflow-x: auto; }
.verdict { font-weight: 600; white-space: nowrap; }
.yes { color: #00604a; } .no { color: #a03c00; } .open { color: #555; }
"""
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


def page(title: str, parts: Iterable[str]) -> str:
    """The whole page from parts that are HTML already."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def made_by(result: Mapping[str, Any]) -> Iterator[str]:
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


def heading(text: str) -> str:
    """The heading of a section."""
    return f"<h2>{escape(text)}</h2>"


def prose(text: str) -> str:
    """A paragraph."""
    return f"<p>{escape(text)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; every column but the first holds figures and is flush right."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    lines = [
        "<tr>"
        f"<td>{escape(first)}</td>"
        + "".join(f'<td class="figure">{escape(cell)}</td>' for cell in rest)
        + "</tr>"
        for first, *rest in rows
    ]
    return f'<div class="scroll"><table><tr>{head}</tr>\n{"".join(lines)}</table></div>'


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
