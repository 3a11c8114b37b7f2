"""Commands to the daemon: their types, senders, results and history."""

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
from outrider.service.commands.reverting import Reverted
from outrider.service.host.threads import in_own_thread
from outrider.service.journal.recording import Recording
from outrider.service.shapes.values import Evidence

# -- history ---------------------------------------------------------------------------------------
# The last commands and changes of the mode, recorded in the journal and the log.

CONFIGURATION: Final = "configuration"
"""Command name of records of mode changes that no command made."""
MAX_SHOWN: Final = 100
_SUBMIT_TIMEOUT_S: Final = 2.0
"""Seconds to wait for space in the journal; after that a command is only in the log."""
log = structlog.get_logger()


class CommandHistory:
    """History of commands, the newest at the end.

    Args:
        recording: the journal.
    """

    def __init__(self, recording: Recording) -> None:
        self._recording = recording
        self._records: deque[CommandRecord] = deque(maxlen=MAX_SHOWN)
        try:
            with Journal(recording.path, read_only=True) as journal:
                found = [record for _, record in journal.latest_commands(MAX_SHOWN)]
            self._records.extend(reversed(found))
        except (LedgerError, TypeError, ValueError) as error:
            log.error("commands_unreadable", error=str(error))

    @property
    def records(self) -> Sequence[CommandRecord]:
        """The last hundred records."""
        return list(self._records)

    @property
    def last_mode(self) -> str:
        """The last effective mode, as far as known; else empty."""
        return self._records[-1].to_mode if self._records else ""

    def since_s(self, mode: str) -> float | None:
        """Return when this mode became effective (Unix seconds); None if unknown."""
        since_s = None
        for record in reversed(self._records):
            if record.to_mode != mode:
                break
            since_s = record.at_s
        return since_s

    async def record(
        self, record: CommandRecord, meta: Mapping[str, Any] = MappingProxyType({})
    ) -> None:
        """Write a record to the log, and to the journal as soon as it has space.

        Args:
            record: the record.
            meta: metadata that the journal stores in the same transaction, by name.
        """
        write = log.info if record.command == CONFIGURATION else log.warning
        write(
            "mode_changed" if record.from_mode != record.to_mode else "command_recorded",
            command=record.command, uid=record.uid, user=record.user, outcome=record.outcome,
            from_mode=record.from_mode, to_mode=record.to_mode, why=record.why,
            detail=record.detail,
        )  # fmt: skip
        self._records.append(record)
        try:
            async with asyncio.timeout(_SUBMIT_TIMEOUT_S):
                await self._recording.submit(Entry(commands=[record], meta=dict(meta)))
        except TimeoutError:
            log.critical("command_not_saved", command=record.command, reason="the journal is full")


# -- command ---------------------------------------------------------------------------------------

MAX_WHY: Final = 500
"""Longest reason of a command, in characters."""
DONE: Literal["done"] = "done"
REFUSED: Literal["refused"] = "refused"
FAILED: Literal["failed"] = "failed"


class _Command(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, tag_field="command"):
    why: Annotated[
        str,
        Meta(max_length=MAX_WHY, description="The reason; shown to all readers."),
    ] = ""


class SetMode(_Command, tag="mode", frozen=True):
    """Lower the mode immediately; this holds until `Promote`."""

    mode: Literal["observe", "shadow", "canary", "active"]


class Promote(_Command, tag="promote", frozen=True):
    """Raise the mode one step towards the configured one, if the evidence allows it."""


class Release(_Command, tag="release", frozen=True):
    """Fall back to shadow, and revert all changes in the batch system."""


Command: TypeAlias = SetMode | Promote | Release


class Sender(NamedTuple):
    """The user who sends a command, as reported by the kernel.

    Attributes:
        uid: number of the user.
        user: that user's name; empty if unknown.
    """

    uid: int
    user: str


class Result(Struct, frozen=True, kw_only=True):
    """The result of a command."""

    command: str
    outcome: Literal["done", "refused", "failed"]
    from_mode: Annotated[str, Meta(description="The effective mode before.")]
    mode: Annotated[str, Meta(description="The effective mode now.")]
    text: Annotated[list[str], Meta(description="What was done, or the causes why not; sentences.")]
    evidence: Annotated[Evidence | None, Meta(description="For promote: the evidence.")] = None
    released: Annotated[list[Reverted], Meta(description="For release: results by lever.")] = []


class StillAtWorkError(Exception):
    """A command is still in progress: this one or an earlier one, as the message says."""


def name_of(command: Any) -> str:
    """Return the name of a command: ``mode``, ``promote`` or ``release``."""
    return str(type(command).__struct_config__.tag)


# -- senders ---------------------------------------------------------------------------------------
# Names of the users who send commands: the user database may be slow, a command must not be.


class Senders:
    """Look-up of users' names by their numbers.

    Args:
        within_s: seconds to wait for the user database, which may be on another host.
    """

    def __init__(self, within_s: float = 2.0) -> None:
        self._within_s = within_s
        self._asked: asyncio.Future[str] | None = None

    async def sender(self, uid: int) -> Sender:
        """Return the user of a number; without a name if the database does not answer in time."""
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
# Interface of the command subsystem for the web layer; a part of the daemon's view.


class CommandPort(Protocol):
    """Interface that executes commands, with their history and evidence."""

    @property
    def history(self) -> CommandHistory:
        """The history of the last commands."""
        ...

    @property
    def evidence(self) -> Evidence:
        """The current evidence for and against raising the mode."""
        ...

    async def execute(self, command: Command, uid: int) -> Result:
        """Execute a command of an authorised user. Raises `StillAtWorkError`."""
        ...
