"""Lint of the pages: the length of sentences and pages, semicolons and words to avoid.

Pages are README, ARCHITECTURE, CONTRIBUTING and `docs/`. Decision records, generated reference and
recorded results are excluded: nobody writes them by hand, or edits them later.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

MAX_WORDS: Final = 35
LONG_WORDS: Final = 25
LONG_SHARE: Final = 0.1
"""Maximum share of a page's sentences with more than `LONG_WORDS` words."""
MAX_PAGE_WORDS: Final = 1_800
MAX_SEMICOLONS: Final = 8
"""Maximum number of a page's sentences with a semicolon."""
_REFERENCE: Final = {"docs/glossary.md"}
"""Reference pages, whose length is not limited."""
_LEFT_OUT: Final = ("docs/decisions/", "docs/reference/", "docs/results/")
_TOP: Final = {"README.md": 700, "ARCHITECTURE.md": 900, "CONTRIBUTING.md": 1_800}
_WORDS: Final = re.compile(
    r"\b(?:anew|lately|for ever|by chance|befell|foretold|heeds?|mends?|reckon(?:s|ed)?|to be had|"
    r"thrown away|right would be|whoever|nobody|somebody|everybody|as yet)\b",
    re.IGNORECASE,
)


def sentences(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and text of each sentence of prose: no code, table, heading or comment."""
    paragraph: list[str] = []
    start, in_code = 0, False
    for number, line in enumerate([*text.splitlines(), ""], 1):
        stripped = line.strip()
        if stripped.startswith(("```", "~~~", ":::")):
            in_code = not in_code
            stripped = ""
        is_prose = bool(stripped) and not in_code and not (line[:4] == "    " and not paragraph)
        is_prose = is_prose and not stripped.startswith(("|", "#", "<", "[", "!"))
        begins = bool(re.match(r"([-*+]|\d+\.)\s", stripped))
        if paragraph and (not is_prose or begins):
            yield from ((start, part) for part in _split(" ".join(paragraph)))
            paragraph = []
        if is_prose:
            if not paragraph:
                start = number
            paragraph.append(re.sub(r"^([-*+]|\d+\.)\s+", "", stripped))


def _split(paragraph: str) -> list[str]:
    plain = re.sub(r"`[^`]*`", "`x`", paragraph)
    plain = re.sub(r"\]\([^)]*\)", "]", plain)
    return [
        part for part in re.split(r"(?<=[.!?])[\")*_]*\s+(?=[\"(*_`\[]*[A-Z0-9`])", plain) if part
    ]


def faults(root: Path) -> Iterator[tuple[str, int, str, str]]:
    """Yield file, line, rule and text of what is wrong in the pages below a folder."""
    pages = [root / name for name in _TOP] + sorted((root / "docs").rglob("*.md"))
    for page in pages:
        name = page.relative_to(root).as_posix()
        if page.is_file() and not name.startswith(_LEFT_OUT):
            yield from page_faults(page.read_text(encoding="utf-8"), name)


def page_faults(text: str, name: str) -> Iterator[tuple[str, int, str, str]]:
    """Yield file, line, rule and text of what is wrong in one page."""
    found = list(sentences(text))
    long = [one for one in found if len(one[1].split()) > LONG_WORDS]
    for line, sentence in found:
        if len(sentence.split()) > MAX_WORDS:
            yield name, line, f"a sentence of over {MAX_WORDS} words", sentence
        if word := _WORDS.search(sentence):
            yield name, line, f"{word[0]!r} on a page", sentence
    if len(long) > max(1, LONG_SHARE * len(found)):
        rule = f"{len(long)} of {len(found)} sentences have over {LONG_WORDS} words"
        yield name, long[0][0], rule, long[0][1]
    with_semicolon = [one for one in found if ";" in one[1]]
    if len(with_semicolon) > MAX_SEMICOLONS:
        rule = f"{len(with_semicolon)} sentences with a semicolon"
        yield name, with_semicolon[0][0], rule, with_semicolon[0][1]
    limit, words = _TOP.get(name, MAX_PAGE_WORDS), len(text.split())
    if words > limit and name not in _REFERENCE:
        yield name, 1, f"{words} words on a page, over {limit}", ""
