"""What the daemon can be commanded, by whom, and what came of it."""

import asyncio
import pwd
from collections import deque
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NamedTuple, Protocol, TypeAlias

import structlog
from msgspec import Meta, Struct

from outrider.journal import CommandRecord, Entry, Journal
from outrider.model.errors import LedgerError
from outrider.service.commands.evidence import Evidence
from outrider.service.commands.taking_back import TakenBack
from outrider.service.host.own_thread import in_own_thread
from outrider.service.journal.recording import Recording

# -- history ---------------------------------------------------------------------------------------
# The last commands and changes of the mode, and their way into journal and log.

CONFIGURATION: Final = "configuration"
"""Of a record: the mode in force is another, though nobody commanded that."""
MOST_SHOWN: Final = 100
_SUBMIT_S: Final = 2.0
"""How long the journal may have no room for a command before it is in the log alone."""
log = structlog.get_logger()


class CommandHistory:
    """What was commanded, the newest at the end.

    Args:
        recording: the journal.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._records: deque[CommandRecord] = deque(maxlen=MOST_SHOWN)
        try:
            with Journal(recording.path, read_only=True) as journal:
                found = [record for _, record in journal.latest_commands(MOST_SHOWN)]
            self._records.extend(reversed(found))
        except (LedgerError, TypeError, ValueError) as error:
            log.error("commands_unreadable", error=str(error))

    @property
    def records(self) -> Sequence[CommandRecord]:
        """The last hundred."""
        return list(self._records)

    @property
    def last_mode(self) -> str:
        """The mode that was in force last, as far as is known; else empty."""
        return self._records[-1].to_mode if self._records else ""

    def since_s(self, mode: str) -> float | None:
        """Since when this mode has been in force (Unix seconds); None where that is not known."""
        since_s = None
        for record in reversed(self._records):
            if record.to_mode != mode:
                break
            since_s = record.at_s
        return since_s

    async def record(
        self, record: CommandRecord, meta: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Write it to the log, and to the journal as soon as that has room.

        Args:
            record: what is to be recorded.
            meta: kept by the journal in the same transaction, by name.
        """
        tell = log.info if record.command == CONFIGURATION else log.warning
        tell(
            "mode_changed" if record.from_mode != record.to_mode else "command_recorded",
            command=record.command, uid=record.uid, user=record.user, outcome=record.outcome,
            from_mode=record.from_mode, to_mode=record.to_mode, why=record.why,
            detail=record.detail,
        )  # fmt: skip
        self._records.append(record)
        try:
            async with asyncio.timeout(_SUBMIT_S):
                await self._recording.submit(Entry(commands=[record], meta=dict(meta)))
        except TimeoutError:
            log.critical("command_not_saved", command=record.command, reason="the journal is full")


# -- command ---------------------------------------------------------------------------------------

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


# -- senders ---------------------------------------------------------------------------------------
# Who gives a command, by name: the user database may be slow, and a command must not be.


class Senders:
    """Finds users' names by their numbers.

    Args:
        within_s: how long to wait for the user database, which may be on another host.
    """

    def __init__(self, within_s: float = 2.0) -> None:
        self._within_s = within_s
        self._asked: asyncio.Future[str] | None = None

    async def sender(self, uid: int) -> Sender:
        """Who has this number; without a name where the database does not tell in time."""
        if self._asked is not None and not self._asked.done():
            return Sender(uid, "")  # it hangs: one thread is enough
        self._asked = in_own_thread(lambda: _name_of(uid), "user-database")
        await asyncio.wait([self._asked], timeout=self._within_s)
        return Sender(uid, self._asked.result() if self._asked.done() else "")


def _name_of(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except (KeyError, OSError):
        return ""


# -- port ------------------------------------------------------------------------------------------
# What the web may ask of commands: who looks at the daemon's view finds it there.


class CommandPort(Protocol):
    """Carries out commands, and tells of those that were given."""

    @property
    def history(self) -> CommandHistory:
        """The last commands."""
        ...

    @property
    def evidence(self) -> Evidence:
        """What there is for and against climbing, now."""
        ...

    async def carry_out(self, command: Command, uid: int) -> Result:
        """Carry out a command of a user who may; what came of it. Raises `StillAtWorkError`."""
        ...
