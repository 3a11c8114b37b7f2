"""Where one ClassAd ends and the next begins in a stream of JSON objects or XML elements."""

import re
from collections.abc import Iterator
from typing import Final, NamedTuple


class Markup(NamedTuple):
    """How ads are delimited.

    Attributes:
        tokens: finds delimiters; what else it finds (strings) is passed over.
        opening, closing: the delimiters of an ad; ads may hold ads.
        fresh: an opening at the start of a line, which only a new record has.
        between: what may stand between records.
    """

    tokens: re.Pattern[bytes]
    opening: bytes
    closing: bytes
    fresh: bytes
    between: re.Pattern[bytes]


JSON: Final = Markup(
    # a string that does not end is one to its line's end: searching on inside it would never end
    tokens=re.compile(rb'"[^"\\\n]*+(?:\\.[^"\\\n]*+)*+"?|\n\{|[{}]'),
    opening=b"{",
    closing=b"}",
    fresh=b"\n{",
    between=re.compile(rb"[\s,\[\]]*+"),
)
XML: Final = Markup(
    tokens=re.compile(rb"\n<c>|</?c>"),
    opening=b"<c>",
    closing=b"</c>",
    fresh=b"\n<c>",
    between=re.compile(rb"(?:\s|<\?[^>]*>|<![^>]*>|</?classads>)*+"),
)

RECORD: Final = "record"
CUT_SHORT: Final = "cut_short"
GARBAGE: Final = "garbage"


def frames(data: bytes, markup: Markup) -> Iterator[tuple[str, int, int]]:
    """Cut the data into whole records and what is none.

    Yields:
        (`RECORD`, `CUT_SHORT` or `GARBAGE`, first byte, byte after the last). What follows the
        last of them is not whole yet.
    """
    depth = 0
    start = 0  # of the record, or of what stands between two
    for token in markup.tokens.finditer(data):
        word = token.group()
        if word == markup.fresh or (word == markup.opening and not depth):
            here = token.end() - len(markup.opening)
            if depth:
                yield CUT_SHORT, start, here
            elif not markup.between.fullmatch(data, start, here):
                yield GARBAGE, start, here
            start, depth = here, 1
        elif word == markup.opening:
            depth += 1
        elif word == markup.closing and depth:
            depth -= 1
            if not depth:
                yield RECORD, start, token.end()
                start = token.end()
