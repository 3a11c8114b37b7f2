"""Pseudonyms: users' names are personal data and need not be kept to learn from their jobs."""

import hashlib
import hmac
import os
import re
import secrets
from pathlib import Path
from typing import Final

import msgspec

from outrider.model.errors import LedgerError
from outrider.model.events import CHANGED, SUBMITTED, NamedEvent

KEY_NAME: Final = "pseudonym.key"
_KEY_BYTES: Final = 32
_PSEUDONYM: Final = re.compile(r"u-[0-9a-f]{10}")


class Pseudonyms:
    """Keyed, stable and one-way: the same user has the same pseudonym as long as the key lives.

    Args:
        key: secret bytes of this site.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, name: str) -> str:
        """The pseudonym of a user."""
        told = name.encode(errors="surrogateescape")
        return "u-" + hmac.new(self._key, told, hashlib.sha256).hexdigest()[:10]

    def in_vo(self, vo: str, user: str) -> str:
        """A VO with the user's name in it replaced: ``physics.alice``, ``alice``."""
        return vo if is_pseudonym(user) else _as_part(user).sub(self.of(user), vo)

    def hide(self, event: NamedEvent) -> NamedEvent:
        """The event with its user's name replaced, in a VO that is named for that user too."""
        time_s, kind, subject, extra = event
        if kind == SUBMITTED and extra.user:
            extra = msgspec.structs.replace(
                extra, user=self.of(extra.user), vo=self.in_vo(extra.vo, extra.user)
            )
        elif kind == CHANGED and extra.get("user"):
            vo = {"vo": self.in_vo(extra["vo"], extra["user"])} if extra.get("vo") else {}
            extra = {**extra, "user": self.of(extra["user"]), **vo}
        return time_s, kind, subject, extra


def is_pseudonym(name: str) -> bool:
    """Whether this is a pseudonym already: then it need not be hidden again."""
    return _PSEUDONYM.fullmatch(name) is not None


def is_named_for(vo: str, user: str) -> bool:
    """Whether a user's name is a VO's, or a part of it: ``alice``, ``physics.alice``."""
    return user in vo and _as_part(user).search(vo) is not None


def _as_part(user: str) -> re.Pattern[str]:
    return re.compile(rf"(?:^|(?<=[.@/])){re.escape(user)}(?=[.@/]|$)")


def load_key(path: Path) -> bytes:
    """The site's key; made at first use, readable by the daemon only.

    It is there whole or not at all: a file that was cut short is made anew.

    Raises:
        LedgerError: it can neither be read nor made.
    """
    try:
        if path.exists() and len(key := path.read_bytes()) >= _KEY_BYTES:
            return key
        key = secrets.token_bytes(_KEY_BYTES)
        beside = path.with_suffix(".part")
        beside.unlink(missing_ok=True)
        with os.fdopen(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(key)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
    except OSError as error:
        raise LedgerError(f"{path}: the key of pseudonyms cannot be made: {error}") from error
    return key
