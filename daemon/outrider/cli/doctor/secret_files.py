"""Checks of the certificates, keys, tokens and passwords that a configuration names.

Their contents are never shown.
"""

import contextlib
import datetime as dt
import os
import re
import secrets
import ssl
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from outrider.cli.doctor.sources import Check
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import clock, duration

if TYPE_CHECKING:
    from outrider.model.deployment import BrokerSettings
    from outrider.service.config.loaded import LoadedConfig

RENEW_BEFORE_S: Final = 30 * 86_400.0
"""Remaining validity below which a certificate should be renewed."""
MAX_BYTES: Final = 1024 * 1024
"""Maximum size of such a file; a bundle of all authorities is a quarter of it."""
_AS_DAEMON: Final = "run this as the daemon's user, and let only that user read the file"


def check_secret_files(loaded: "LoadedConfig") -> Iterator[Check]:
    """Yield a check for each certificate with its key, token and password that is configured."""
    config = loaded.config
    yield from _certificate("tls_cert", config.tls_cert, "tls_key", config.tls_key)
    if config.token_file is not None:
        yield _token(Path(config.token_file))
    if config.mqtt is not None:
        yield from _broker("mqtt", config.mqtt)
    for label, settings in _brokers(loaded):
        yield from _broker(f"adapter {label}", settings)


def _brokers(loaded: "LoadedConfig") -> "Iterator[tuple[str, BrokerSettings]]":
    from outrider.model.deployment import BrokerSettings
    from outrider.model.settings import build
    from outrider.plugins.finding import load_adapter
    from outrider.service.config.declarations import adapter_of

    for label, table in loaded.config.adapters.items():
        kind, options = adapter_of(label, table)
        if f"adapters.{label}" in loaded.broken:
            continue
        record = load_adapter(kind).settings_type
        if issubclass(record, BrokerSettings):
            settings: BrokerSettings = build(record, options, f"[adapters.{label}]")
            yield label, settings


def _broker(name: str, settings: "BrokerSettings") -> Iterator[Check]:
    if settings.password_file is not None:
        yield _password(f"{name} password_file", Path(settings.password_file))
    if settings.ca_file is not None:
        yield _valid(f"{name} ca_file", Path(settings.ca_file))
    if settings.cert_file is not None:
        key = settings.key_file or settings.cert_file
        yield from _certificate(f"{name} cert_file", settings.cert_file, f"{name} key_file", key)


def _certificate(
    cert_name: str, cert: str | None, key_name: str, key: str | None
) -> Iterator[Check]:
    """Check a certificate, that the key belongs to it, and that the key is private."""
    if cert is None:
        if key is not None:
            yield Check(
                key_name, "fail", f"{key}: {cert_name} is not set, so there is no TLS",
                f"set the certificate of this key: {cert_name} = \"/etc/outrider/cert.pem\"",
            )  # fmt: skip
        return
    yield _valid(cert_name, Path(cert))
    own_key = Path(key or cert)
    unreadable = _unreadable(key_name, own_key)
    yield unreadable or _pair(key_name, Path(cert), own_key) or _private(key_name, own_key)


def _valid(name: str, path: Path) -> Check:
    """Check that a certificate exists, is valid now and does not expire soon."""
    unreadable = _unreadable(name, path)
    if unreadable is not None:
        return unreadable
    remedy = "use the PEM file of a certificate"
    try:
        begins_s, ends_s = validity_of(path)
    except ValueError as error:  # also UnicodeDecodeError: PEM files are ASCII
        why = "not a PEM file" if isinstance(error, UnicodeDecodeError) else str(error)
        return Check(name, "fail", f"{path}: {why}", remedy)
    now_s, day = time.time(), clock(ends_s, "UTC")
    if ends_s <= now_s:
        ago = duration(now_s - ends_s)
        return Check(name, "fail", f"{path}: expired {ago} ago, {day}", "renew it and reload")
    if begins_s > now_s:
        begin = clock(begins_s, "UTC")
        remedy = "wait until then, or check this host's clock"
        return Check(name, "fail", f"{path}: not valid before {begin}", remedy)
    if ends_s - now_s < RENEW_BEFORE_S:
        left = duration(ends_s - now_s)
        return Check(name, "warn", f"{path}: expires in {left}, {day}", "renew it and reload")
    return Check(name, "ok", f"{path}: valid until {day}")


def _pair(name: str, cert: Path, key: Path) -> Check | None:
    """Check that a key belongs to its certificate; None if it does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # OpenSSL would ask for a passphrase on a terminal, which the daemon does not have.
        context.load_cert_chain(cert, key, password=lambda: "")
    except ssl.SSLError as error:
        if "MISMATCH" in (error.reason or ""):
            return Check(
                name, "fail", f"{key}: is not the key of the certificate {cert}",
                "use the key with which this certificate was requested",
            )  # fmt: skip
        return _no_key(name, key)
    except (OSError, ValueError):
        return _no_key(name, key)
    return None


def _no_key(name: str, key: Path) -> Check:
    found = f"{key}: not a private key, or one with a passphrase"
    return Check(name, "fail", found, "use a PEM file of a key without a passphrase")


def _token(path: Path) -> Check:
    from outrider.service.web.access import SHORTEST_TOKEN, read_token

    unreadable = _unreadable("token_file", path)
    if unreadable is not None:
        return unreadable
    try:
        read_token(path)
    except ConfigurationError:
        return Check(
            "token_file", "fail",
            f"{path}: does not contain one word of {SHORTEST_TOKEN} characters or more",
            f"openssl rand -hex 32 > {path}",
        )  # fmt: skip
    return _private("token_file", path)


def _password(name: str, path: Path) -> Check:
    unreadable = _unreadable(name, path)
    if unreadable is not None:
        return unreadable
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeError:
        return Check(name, "fail", f"{path}: is not text", "write the password on its first line")
    if not lines or not lines[0]:
        remedy = "write the password on its first line"
        return Check(name, "fail", f"{path}: its first line is empty", remedy)
    return _private(name, path)


def _unreadable(name: str, path: Path) -> Check | None:
    try:
        if not path.is_file() and path.exists():  # reading a pipe would block
            return Check(name, "fail", f"{path}: is not a regular file", "use a regular file")
        with path.open("rb") as file:
            if len(file.read(MAX_BYTES + 1)) > MAX_BYTES:
                remedy = "use the file of this purpose"
                return Check(name, "fail", f"{path}: larger than {MAX_BYTES} bytes", remedy)
    except PermissionError as error:
        return Check(name, "fail", f"{path}: cannot be read: {error.strerror}", _AS_DAEMON)
    except OSError as error:
        remedy = "use a file that exists"
        return Check(name, "fail", f"{path}: cannot be read: {error.strerror}", remedy)
    return None


def _private(name: str, path: Path) -> Check:
    """Check that only its owner may read a file."""
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o077:
        found = f"{path}: other users than its owner have access (mode {mode:04o})"
        return Check(name, "warn", found, f"chmod 600 {path}")
    return Check(name, "ok", f"{path}: valid, and only its owner has access")


def refuse_bad_files(loaded: "LoadedConfig") -> list[str]:
    """Return warnings about the files that a configuration names, one line each.

    Raises:
        ConfigurationError: a file is missing, or its contents cannot be used.
    """
    warnings = []
    for check in check_secret_files(loaded):
        text = f"{check.name}: {check.found}; {check.remedy}"
        if check.state == "fail":
            raise ConfigurationError(f"{loaded.source}: {text}")
        if check.state == "warn":
            warnings.append(text)
    return warnings


# -- certificates ----------------------------------------------------------------------------------
# Validity of a certificate, read from its file with the standard library alone.
#
# Both times are at a fixed place of every X.509 certificate (RFC 5280, section 4.1), so skipping
# the first fields finds them. The TLS library checks the signature and the names.

_PEM: Final = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_VERSION, _UTC_TIME, _GENERAL_TIME = 0xA0, 0x17, 0x18
_BEFORE_VALIDITY: Final = 3
"""Fields between version and validity: serial number, algorithm, issuer."""


class Validity(NamedTuple):
    """Begin and end of a certificate's validity, in Unix seconds."""

    begins_s: float
    ends_s: float


def validity_of(path: Path) -> Validity:
    """Return the validity of the first certificate of a PEM file, which is the server's own.

    Raises:
        OSError: the file cannot be read.
        ValueError: the file contains no certificate.
    """
    found = _PEM.search(path.read_text(encoding="ascii"))
    if found is None:
        raise ValueError("contains no certificate")
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
    """Return tag and content of the first field, and the rest (DER, X.690 section 8.1)."""
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


# -- token files -----------------------------------------------------------------------------------
# Creating a token file: it is private before the token is written.

_MODE: Final = 0o600
_TOKEN_BYTES: Final = 32


def make_token(path: Path, *, replace: bool) -> str:
    """Write a random token atomically into a file of mode 0600.

    The file belongs to the owner of its folder, so that root may create it for a daemon.

    Args:
        path: the file; its folder must exist.
        replace: True to replace an existing token.

    Returns:
        What was done, as a sentence.

    Raises:
        ConfigurationError: the file cannot be written; the message gives file and cause.
    """
    is_there = path.exists() or path.is_symlink()
    if is_there and not replace:
        closed = _close(path)
        return f"{path}: already contains a token, which is kept (--new replaces it){closed}."
    part = path.with_name(f"{path.name}.{secrets.token_hex(4)}.part")
    try:
        file = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, _MODE)
        try:
            with os.fdopen(file, "w", encoding="ascii") as text:
                text.write(secrets.token_hex(_TOKEN_BYTES) + "\n")
                text.flush()
                os.fchmod(text.fileno(), _MODE)
                owned_by = _give_to_owner_of(path.parent, text.fileno())
                os.fsync(text.fileno())
            part.replace(path)
        except OSError:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
    except OSError as error:
        raise ConfigurationError(
            f"{path}: the token cannot be written: {error.strerror}; expected an existing folder "
            "that you may write, or run as root"
        ) from error
    done = "replaced the token" if is_there else "created a token"
    return f"{path}: {done}, mode 0600{owned_by}."


def _give_to_owner_of(folder: Path, file: int) -> str:
    owner = folder.stat()
    if os.geteuid() != 0 or owner.st_uid == 0:
        return ""
    os.fchown(file, owner.st_uid, owner.st_gid)
    return f", owned by user {owner.st_uid} as its folder is"


def _close(path: Path) -> str:
    """Make a file private if other users can read it; return what was done, as text."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if not os.fstat(file).st_mode & 0o077:
                return ""
            os.fchmod(file, _MODE)
        finally:
            os.close(file)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: cannot be made private: {error.strerror}; expected a file that you own, "
            "mode 0600"
        ) from error
    return "; other users could read it, so its mode is 0600 now"
