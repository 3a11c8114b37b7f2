"""What the daemon can be commanded, by whom, and what came of it."""

from typing import Annotated, Any, Final, Literal, NamedTuple, TypeAlias

from msgspec import Meta, Struct

from outrider.service.commands.evidence import Evidence
from outrider.service.commands.taking_back import TakenBack

LONGEST_WHY: Final = 500
"""Characters of a reason."""
DONE: Literal["done"] = "done"
REFUSED: Literal["refused"] = "refused"
FAILED: Literal["failed"] = "failed"


class _Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="command"):
    why: Annotated[
        str,
        Meta(max_length=LONGEST_WHY, description="The reason; everybody who may look is shown it."),
    ] = ""


class SetMode(_Command, tag="mode", frozen=True):
    """Lower the mode, at once; it holds until `Promote`."""

    mode: Literal["observe", "shadow", "canary", "active"]


class Promote(_Command, tag="promote", frozen=True):
    """Climb one step towards the configuration's mode, where the evidence is not against it."""


class Release(_Command, tag="release", frozen=True):
    """Fall to shadow, and take back whatever was changed in the batch system."""


Command: TypeAlias = SetMode | Promote | Release


class Sender(NamedTuple):
    """Who gives a command, as the kernel says it.

    Attributes:
        uid: number of the user.
        user: that user's name; empty where it is not known.
    """

    uid: int
    user: str


class Result(Struct, frozen=True, kw_only=True):
    """What came of a command."""

    command: str
    outcome: Literal["done", "refused", "failed"]
    from_mode: Annotated[str, Meta(description="The mode in force before.")]
    mode: Annotated[str, Meta(description="The mode in force now.")]
    text: Annotated[list[str], Meta(description="What was done, or why not; sentences.")]
    evidence: Annotated[Evidence | None, Meta(description="Of promote: what there is.")] = None
    released: Annotated[list[TakenBack], Meta(description="Of release: by lever.")] = []


class StillAtWorkError(Exception):
    """A command is not done yet, this one or the one before; the message says which."""


def plain(why: str) -> str:
    """A reason as one line that no terminal takes for more than text."""
    return "".join(sign for sign in " ".join(why.split()) if sign.isprintable())


def name_of(command: Any) -> str:
    """Its name: ``mode``, ``promote`` or ``release``."""
    return str(type(command).__struct_config__.tag)
