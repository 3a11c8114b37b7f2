"""Pieces of HTML pages: one file that needs nothing beside it, readable without scripts.

Whatever is put into a page is text: it is escaped, and characters that would not show, or would
turn the reading of a line around, are spelled out. Names of users, machines and jobs are the words
of strangers.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any, Final

_STYLE: Final = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem;
  color: #1a1a1a; background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.2rem; margin-top: 2.2rem; }
h3 { font-size: 1rem; margin: 1.4rem 0 0; }
table { border-collapse: collapse; margin: 1rem 0; font-size: .85rem; }
th, td { padding: .25rem .6rem; border-bottom: 1px solid #ddd; text-align: left;
  vertical-align: top; }
td { overflow-wrap: break-word; max-width: 22rem; }
td.figure { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.5rem 0; } figure svg { max-width: 100%; height: auto; }
figcaption { color: #444; font-size: .9rem; }
.scroll { overflow-x: auto; }
.verdict { font-weight: 600; white-space: nowrap; }
.yes { color: #00604a; } .no { color: #a03c00; } .open { color: #555; }
@media print {
  body { margin: 0; max-width: none; font-size: 10pt; } .scroll { overflow: visible; }
  h2, h3 { break-after: avoid; } tr { break-inside: avoid; }
}
"""
_ONLY_ITSELF: Final = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"
"""Content security policy: no script runs and nothing is fetched, whatever slips in."""
LONGEST: Final = 200
"""Characters of a name that are shown."""


def page(title: str, parts: Iterable[str]) -> str:
    """The whole page from parts that are HTML already."""
    body = "\n".join(parts)
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_ONLY_ITSELF}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{text(title)}</title>\n<style>{_STYLE}</style>\n</head>\n"
        f"<body>\n<h1>{text(title)}</h1>\n{body}\n</body>\n</html>\n"
    )


def text(words: str) -> str:
    """Text as HTML: escaped, and what would not show spelled out."""
    return escape("".join(c if c.isprintable() or c in "\n\t" else _spelled(c) for c in words))


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()


def name(words: str) -> str:
    """A stranger's name, cut where it is endless; nothing is a dash."""
    return (words if len(words) <= LONGEST else f"{words[:LONGEST]}...") or "-"


def heading(words: str) -> str:
    """The heading of a section."""
    return f"<h2>{text(words)}</h2>"


def subheading(words: str) -> str:
    """The heading of a part of a section."""
    return f"<h3>{text(words)}</h3>"


def prose(words: str) -> str:
    """A paragraph."""
    return f"<p>{text(words)}</p>"


def table(columns: Sequence[str], rows: Iterable[Sequence[str]], *, in_words: int = 1) -> str:
    """A table; every column but the first `in_words` holds figures and is flush right."""
    head = "".join(f"<th>{text(column)}</th>" for column in columns)
    lines = [
        "<tr>"
        + "".join(f"<td>{text(cell)}</td>" for cell in row[:in_words])
        + "".join(f'<td class="figure">{text(cell)}</td>' for cell in row[in_words:])
        + "</tr>"
        for row in rows
    ]
    return f'<div class="scroll"><table><tr>{head}</tr>\n{"".join(lines)}</table></div>'


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
