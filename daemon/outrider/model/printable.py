"""Text from outside (names, reasons, hosts, file names) made safe to print.

A user's host or account name must not steer the terminal of an admin. So control characters,
escape sequences and bidirectional overrides are spelled out before anything is printed.
"""

from typing import Final

_FORMULA_STARTS: Final = ("=", "+", "-", "@", "\t", "\r")


def printable(text: str) -> str:
    r"""Return a text with what steers a terminal spelled out; line breaks and tabs stay.

    >>> printable("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\nc'
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\n\t" else _spelled(c) for c in text)


def printable_name(text: str) -> str:
    r"""Return a name with all that is not a plain character spelled out, line breaks too.

    >>> printable_name("a\x1b\nb"), printable_name("Zoë")
    ('a\\x1b\\nb', 'Zoë')
    """
    return "".join(c if c.isprintable() else _spelled(c) for c in text)


def printable_line(text: str, max_length: int | None = None) -> str:
    r"""Return a text as one printable line; longer than `max_length` characters, it is cut.

    >>> printable_line("a\nb\x1b"), printable_line("abcdef", 3)
    ('a b\\x1b', 'abc...')
    """
    cut = text if max_length is None else text[:max_length]
    line = printable(cut).replace("\n", " ").replace("\t", " ")
    return line if len(cut) == len(text) else f"{line}..."


def csv_cell(value: object) -> object:
    """Return a cell for CSV; a formula gets a leading ``'``, so that no spreadsheet runs it.

    >>> [csv_cell(v) for v in ("=1+2", "-", -1.5, "plain")]
    ["'=1+2", '-', -1.5, 'plain']
    """
    if isinstance(value, str) and len(value) > 1 and value.startswith(_FORMULA_STARTS):
        return f"'{value}"
    return value


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()
