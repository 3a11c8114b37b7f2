"""What an adapter finds of its batch system on a host, before anybody has configured it."""

from collections.abc import Mapping
from typing import Any

from msgspec import Struct


class FoundSystem(Struct, frozen=True, kw_only=True):
    """For ``outrider install-service`` where there is no configuration yet.

    Attributes:
        system: what people call it. Of adapters that find the same one, the first by name is taken.
        sign: what it was found by, a path or a command.
        settings: those that its adapter has to have; empty: its table alone is enough.
        review: what somebody should know or decide before relying on it, a sentence each.
    """

    system: str
    sign: str
    settings: Mapping[str, Any] = {}
    review: tuple[str, ...] = ()
