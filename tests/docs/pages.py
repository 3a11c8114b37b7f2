"""The project's prose, taken apart: pages, fenced blocks, links, and words in code."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

REPOSITORY = Path(__file__).resolve().parents[2]
_FENCE = re.compile(r"^```(?P<language>\w*)[^\n]*\n(?P<text>.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_SPAN = re.compile(r"`(?P<text>[^`\n]+)`")
_HEADING = re.compile(r"^#+ (?P<text>.+)$", re.MULTILINE)


class Block(NamedTuple):
    """A fenced block, and the place where it stands."""

    place: str
    language: str
    text: str


def pages() -> list[Path]:
    """Every page of prose."""
    found = [*REPOSITORY.glob("*.md"), *(REPOSITORY / "docs").rglob("*.md")]
    return sorted([*found, *(REPOSITORY / "examples").rglob("*.md")])


def name_of(page: Path) -> str:
    """A page's path inside the repository."""
    return page.relative_to(REPOSITORY).as_posix()


def blocks(page: Path, *languages: str) -> Iterator[Block]:
    """Fenced blocks of these languages."""
    text = page.read_text(encoding="utf-8")
    for fence in _FENCE.finditer(text):
        if fence["language"] in languages:
            line = text.count("\n", 0, fence.start()) + 1
            yield Block(f"{name_of(page)}:{line}", fence["language"], fence["text"])


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return _FENCE.sub("", page.read_text(encoding="utf-8"))


def links(page: Path) -> Iterator[str]:
    """Targets of links and pictures."""
    for link in _LINK.finditer(prose(page)):
        yield link["target"]


def spans(page: Path) -> Iterator[str]:
    """Words set as code within sentences."""
    for span in _SPAN.finditer(prose(page)):
        yield span["text"]


def anchors(page: Path) -> set[str]:
    """Return the anchors of a page: headings as code hosts spell them."""
    headings = (heading["text"] for heading in _HEADING.finditer(prose(page)))
    return {re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-") for text in headings}
