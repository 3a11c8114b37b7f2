"""Pseudonyms: users' names are personal data and need not be kept to learn from their jobs."""

import hashlib
import hmac
import secrets
from pathlib import Path

import msgspec

from outrider.model.events import CHANGED, SUBMITTED, NamedEvent


class Pseudonyms:
    """Keyed, stable and one-way: the same user has the same pseudonym as long as the key lives.

    Args:
        key: secret bytes of this site.
    """

    def __init__(self, key: bytes) -> None:
        self._key = key

    def of(self, name: str) -> str:
        """The pseudonym of a user."""
        return "u-" + hmac.new(self._key, name.encode(), hashlib.sha256).hexdigest()[:10]

    def hide(self, event: NamedEvent) -> NamedEvent:
        """The event with its user's name replaced."""
        time_s, kind, subject, extra = event
        if kind == SUBMITTED and extra.user:
            extra = msgspec.structs.replace(extra, user=self.of(extra.user))
        elif kind == CHANGED and extra.get("user"):
            extra = {**extra, "user": self.of(extra["user"])}
        return time_s, kind, subject, extra


def load_key(path: Path) -> bytes:
    """The site's key; made at first use, readable by the daemon only."""
    if not path.exists():
        path.touch(mode=0o600)
        path.write_bytes(secrets.token_bytes(32))
    return path.read_bytes()
