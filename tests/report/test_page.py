"""HTML page: names of machines stay text whatever they contain, and the page is one file."""

from html.parser import HTMLParser
from pathlib import Path

import pytest

from outrider.model import events as ev
from outrider.report.html import html
from tests.report.journals import at, job, machine, report_of, write

HOSTILE = (
    "<script>alert(1)</script>", '"><img src=x onerror=alert(1)>', "'; DROP TABLE jobs; --",
    "</title></style><svg/onload=alert(1)>", "&lt;b&gt;", "\u202egnp.exe", "a\x00b\x1b[31m\x9b",
    "=cmd|'/c calc'!A0", "long" * 5000, "\u2066\u200b", "",
)  # fmt: skip
TAGS = {
    "html", "head", "meta", "title", "style", "body", "h1", "h2", "h3", "p", "div", "table", "tr",
    "th", "td", "thead", "tbody",
}  # fmt: skip


class Seen(HTMLParser):
    """Tags, attributes and text of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_name_is_nothing_but_text(tmp_path: Path, name: str) -> None:
    events = [
        machine(name or "m", active_w=10.0, cluster=name or "c", cpus=9),
        *job(name or "j", name, 1, [(1, name or "m", 3, "owner"), (4, name or "m", 6, None)],
             vo=name or "all"),
        *job("bad", name, 7, [(7, name or "m", 7.01, "failed_start")]),
        at(9, ev.REMOVED, "bad", "removed"),
    ]  # fmt: skip
    page = html(report_of(write(tmp_path / "j.sqlite", events, 170)))
    seen = Seen()
    seen.feed(page)
    assert seen.tags <= TAGS
    assert seen.attributes <= {"lang", "charset", "http-equiv", "content", "name", "class", "scope"}
    assert all(c.isprintable() or c in "\n\t" for c in page)
    assert len(page) < 60_000
    shown = name[:20].encode("unicode_escape").decode() if not name.isprintable() else name[:20]
    assert shown in seen.text


def test_the_page_needs_nothing_beside_it_and_runs_nothing(tmp_path: Path) -> None:
    page = html(report_of(write(tmp_path / "j", [machine("m")], 170)))
    assert "default-src 'none'" in page
    assert "@media print" in page
    for word in ("<script", "http://", "https://", "src=", "href=", "@import", "url("):
        assert word not in page
