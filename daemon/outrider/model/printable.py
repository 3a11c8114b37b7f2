"""Text from outside (names, reasons, hosts, file names) made safe to keep and to print.

A user's host or account name must not steer the terminal of an admin. So control characters,
escape sequences, bidirectional overrides and characters without width are spelled out, once, where
the text enters. Every name is bounded in bytes, too: any user can write one of thousands.
"""

import re
from hashlib import sha256
from typing import Final

MAX_NAME_BYTES: Final = 256
"""Longest name in bytes of UTF-8; longer ones are cut, and get a digest."""
_DIGEST_CHARS: Final = 16
_MAX_ID_BYTES: Final = 64
_CUT: Final = "..."
_FORMULA_STARTS: Final = (
    "=",
    "+",
    "-",
    "@",
    "\t",
    "\r",
    "\n",
    "\uff1d",
    "\uff0b",
    "\uff0d",
    "\uff20",
)
_BEFORE_FORMULA: Final = " \"'\t\r\n\u00a0\u3000"
"""Characters that a spreadsheet may skip before a formula."""
_NUMBER: Final = re.compile(r"[-+]?[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_INVISIBLE: Final = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U000e0100-\U000e01ef]"
)
"""Characters without width, or blank, that Python counts as printable."""
_JOB_ID: Final = re.compile(
    r"(?P<system>.+?[#:])(?P<id>\d+(?:[._+]\d+){0,2}(?:#\d+)?)", re.DOTALL | re.ASCII
)


def clean_name(text: str, max_bytes: int = MAX_NAME_BYTES) -> str:
    r"""Return a name of printable characters only, of at most `max_bytes` bytes of UTF-8.

    A name that is changed ends with a digest of the original, so that different names stay
    different and the same name always becomes the same. A name that is clean is returned as it is.

    >>> clean_name("Zoë Müller"), clean_name("a\x1bb")
    ('Zoë Müller', 'a\\x1bb~1b036bb7c56caec6')
    >>> len(clean_name("é" * 300).encode())
    256
    """
    if _is_clean(text, max_bytes):
        return text
    digest = sha256(text.encode(errors="surrogatepass")).hexdigest()[:_DIGEST_CHARS]
    shown = printable_name(text[:max_bytes]).encode()
    most = max_bytes - len(digest) - 1
    if len(text) > max_bytes or len(shown) > most:
        shown = shown[: most - len(_CUT)].decode(errors="ignore").encode() + _CUT.encode()
    return f"{shown.decode()}~{digest}"


def clean_job_name(text: str) -> str:
    r"""Return a job's name cleaned as by `clean_name`; its id stays at the end as it is.

    >>> clean_job_name("ap1.example.org#12.0"), clean_job_name("ap\x1b#12.0")
    ('ap1.example.org#12.0', 'ap\\x1b~4850aae11e433663#12.0')
    """
    if _is_clean(text, MAX_NAME_BYTES):
        return text
    found = _JOB_ID.fullmatch(text)
    if found is None or len(found["id"]) > _MAX_ID_BYTES:
        return clean_name(text)
    system, mark = found["system"][:-1], found["system"][-1]
    return f"{clean_name(system, MAX_NAME_BYTES - _MAX_ID_BYTES - 1)}{mark}{found['id']}"


def clean_line(text: str) -> str:
    r"""Return a text, such as a reason, as one printable line of at most `MAX_NAME_BYTES` bytes.

    >>> clean_line("disk full\non node\x1b[2J"), len(clean_line("é" * 9000).encode())
    ('disk full on node[2J', 255)
    """
    if _is_clean(text, MAX_NAME_BYTES):
        return text
    line = one_line(text, 2 * MAX_NAME_BYTES)
    whole = line.encode()
    if len(whole) <= MAX_NAME_BYTES:
        return line
    return whole[: MAX_NAME_BYTES - len(_CUT)].decode(errors="ignore") + _CUT


def one_line(text: str, max_length: int) -> str:
    r"""Return a text as one printable line without control characters, cut at `max_length`.

    >>> one_line("  new\nfile\x1b[2J\u200b  ", 20), one_line("x" * 100, 3)
    ('new file[2J', 'xxx')
    """
    words = " ".join(text[: 4 * max_length].split())
    return "".join(c for c in words if is_visible(c))[:max_length]


def _is_clean(text: str, max_bytes: int) -> bool:
    if len(text) > max_bytes:
        return False
    if text.isascii():
        return text.isprintable()
    return is_visible(text) and len(text.encode()) <= max_bytes


def is_visible(text: str) -> bool:
    r"""Return whether every character of a text is printable and has a width.

    >>> is_visible("Zoë"), is_visible("a\u200bb"), is_visible("a\ufe0f"), is_visible("a\u202eb")
    (True, False, False, False)
    """
    return text.isprintable() and _INVISIBLE.search(text) is None


def printable(text: str) -> str:
    r"""Return a text with what steers a terminal spelled out; line breaks and tabs stay.

    >>> printable("a\x1b[2Jb\nc")
    'a\\x1b[2Jb\nc'
    """
    if is_visible(text):
        return text
    return "".join(c if c in "\n\t" or is_visible(c) else _spelled(c) for c in text)


def printable_name(text: str) -> str:
    r"""Return a name with all that is not a plain character spelled out, line breaks too.

    >>> printable_name("a\x1b\nb"), printable_name("Zoë")
    ('a\\x1b\\nb', 'Zoë')
    """
    return text if is_visible(text) else "".join(c if is_visible(c) else _spelled(c) for c in text)


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

    Numbers stay numbers. Blanks and quotes before a formula do not hide it.

    >>> [csv_cell(v) for v in ("=1+2", "-", "-1.5", -1.5, "plain", " @x", "-x")]
    ["'=1+2", '-', '-1.5', -1.5, 'plain', "' @x", "'-x"]
    """
    if not isinstance(value, str) or len(value) < 2 or _is_number(value):
        return value
    begin = value.lstrip(_BEFORE_FORMULA)
    if value.startswith(_FORMULA_STARTS) or (begin[:1] and begin.startswith(_FORMULA_STARTS)):
        return f"'{value}"
    return value


def _is_number(text: str) -> bool:
    return _NUMBER.fullmatch(text) is not None


def _spelled(character: str) -> str:
    return character.encode("unicode_escape").decode()
