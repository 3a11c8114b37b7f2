"""The kinds of values that answers are made of.

Times are Unix seconds of event time, unless a name says otherwise. Null means unknown, never 0.
Answers may get further fields; a client ignores what it does not know.
"""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta, Struct

Mode: TypeAlias = Literal["observe", "shadow", "canary", "active"]
MachineState: TypeAlias = Literal["busy", "free", "owner", "asleep", "closed"]
JobState: TypeAlias = Literal["queued", "running", "suspended", "held"]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = dict[str, Count]
Unknown: TypeAlias = float | None
"""A number, or null where it is not known."""


class Failure(Struct):
    """Why there is no answer."""

    error: str
