"""The kinds of values that answers are made of."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

Mode: TypeAlias = Literal["observe", "shadow", "canary", "active"]
MachineState: TypeAlias = Literal["busy", "free", "owner", "asleep", "closed"]
JobState: TypeAlias = Literal["queued", "running", "suspended", "held"]
Count: TypeAlias = Annotated[int, Meta(ge=0)]
Counts: TypeAlias = dict[str, Count]
Unknown: TypeAlias = float | None
"""A number, or null where it is not known."""
