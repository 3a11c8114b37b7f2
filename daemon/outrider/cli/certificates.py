"""Until when a certificate is valid, read from its file with the standard library alone.

The two times stand at a fixed place of every X.509 certificate (RFC 5280, section 4.1), so a walk
over the first fields finds them; who signed it and for whom is for the TLS library to judge.
"""

import datetime as dt
import re
import ssl
from pathlib import Path
from typing import Final, NamedTuple

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME, _GENERAL_TIME = 0xA0, 0x17, 0x18
_BEFORE_VALIDITY: Final = 3
"""Fields between version and validity: serial number, algorithm, issuer."""


class Validity(NamedTuple):
    """From when until when, Unix seconds."""

    begins_s: float
    ends_s: float


def validity_of(path: Path) -> Validity:
    """The validity of the first certificate of a PEM file, which is the server's own.

    Raises:
        OSError: the file cannot be read.
        ValueError: it holds no certificate.
    """
    found = _PEM.search(path.read_text(encoding="ascii"))
    if found is None:
        raise ValueError("no certificate in it")
    try:
        return _validity(ssl.PEM_cert_to_DER_cert(found[0]))
    except (IndexError, ValueError) as error:
        raise ValueError("its certificate cannot be read") from error


def _validity(certificate: bytes) -> Validity:
    _, whole, _ = _field(certificate)
    _, rest, _ = _field(whole)
    if rest[0] == _VERSION:
        _, _, rest = _field(rest)
    for _ in range(_BEFORE_VALIDITY):
        _, _, rest = _field(rest)
    _, times, _ = _field(rest)
    begin, begins, after = _field(times)
    end, ends, _ = _field(after)
    return Validity(_seconds(begin, begins), _seconds(end, ends))


def _field(data: bytes) -> tuple[int, bytes, bytes]:
    """Tag and content of the first field, and what follows it (DER, X.690 section 8.1)."""
    tag, length, at = data[0], data[1], 2
    if length & 0x80:
        size = length & 0x7F
        length, at = int.from_bytes(data[2 : 2 + size], "big"), 2 + size
    if at + length > len(data):
        raise ValueError("cut off")
    return tag, data[at : at + length], data[at + length :]


def _seconds(tag: int, text: bytes) -> float:
    if tag not in (_UTC_TIME, _GENERAL_TIME):
        raise ValueError("no time")
    digits = text.decode("ascii").removesuffix("Z")
    if tag == _UTC_TIME:  # two digits of the year: 50 and above are of the century before
        digits = ("19" if int(digits[:2]) >= 50 else "20") + digits
    moment = dt.datetime.strptime(digits, "%Y%m%d%H%M%S").replace(tzinfo=dt.UTC)
    return moment.timestamp()
