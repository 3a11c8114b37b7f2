"""What an examination found: of the daemon's surroundings, of a source."""

from typing import Literal, NamedTuple, TypeAlias

State: TypeAlias = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One finding.

    Attributes:
        name: what was examined.
        state: ``ok``; ``warn``, it works but somebody should know; ``fail``.
        found: what is the case.
        remedy: what to do about it; empty where all is well.
    """

    name: str
    state: State
    found: str
    remedy: str = ""
