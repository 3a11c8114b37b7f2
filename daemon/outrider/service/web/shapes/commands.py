"""The shapes of commands: what was given, and what lowers the mode."""

from typing import Annotated, Literal

from msgspec import Meta, Struct

from outrider.service.web.shapes.values import Mode

_WHO = "Null: nobody gave it, or this client is shown users by pseudonyms."


class CommandRow(Struct):
    """A command, or a change of the mode that nobody commanded."""

    at_s: Annotated[float, Meta(description="Unix seconds by the daemon's clock.")]
    command: Annotated[
        str,
        Meta(
            description="mode, promote, release; fall_back: a guard broke; configuration: a start "
            "or a reload put another mode in force."
        ),
    ]
    uid: Annotated[int | None, Meta(description=_WHO)]
    user: Annotated[str, Meta(description="Who gave it; empty: nobody, or not known.")]
    from_mode: Annotated[str, Meta(description="Empty: there was none before.")]
    to_mode: Mode
    outcome: Literal["done", "refused", "failed"]
    why: Annotated[str, Meta(description="The reason that was given.")]
    detail: Annotated[str, Meta(description="What was done, or why it was not.")]


class ModeLimit(Struct):
    """What keeps the mode below the configuration's, or would."""

    most: Annotated[Mode, Meta(description="The highest mode.")]
    at_s: Annotated[float, Meta(description="Since when, Unix seconds by the daemon's clock.")]
    was: Annotated[str, Meta(description="The mode until then.")]
    by: Literal["guard", "command"]
    why: str
    uid: Annotated[int | None, Meta(description=_WHO)]
    user: str
