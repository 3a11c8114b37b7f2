"""Execution of commands: one at a time, with a timeout and handling of all errors."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, Literal

import msgspec
import structlog

from outrider.acting.gate import ACTING_MODES, CANARY
from outrider.journal import CommandRecord
from outrider.model.errors import OutriderError
from outrider.model.printable import one_line
from outrider.service.commands.command import (
    DONE,
    FAILED,
    MAX_WHY,
    REFUSED,
    Command,
    CommandHistory,
    Promote,
    Release,
    Result,
    Sender,
    Senders,
    SetMode,
    StillAtWorkError,
    name_of,
)
from outrider.service.commands.reverting import LeverReverter
from outrider.service.config.declarations import acting_of
from outrider.service.core.mode_limit import BY_COMMAND, ModeLimit, rank
from outrider.service.daemon.daemon_state import DaemonState
from outrider.service.daemon.levers import make_levers
from outrider.service.modes.mode_changes import ModeChanges
from outrider.service.shapes.values import Evidence

TIMEOUT_S: Final = 45.0
"""Seconds a client waits for a command; the command itself continues."""
_REVERT_TIMEOUT_S: Final = 30.0
_MAX_WAITING: Final = 8
_SHADOW: Final = "shadow"

log = structlog.get_logger()


class Commander:
    """Executes the commands to the daemon.

    Args:
        state: the daemon's state.
        modes: changes the mode.
        history: where commands are recorded.
        evidence: returns the evidence for and against raising the mode.
    """

    def __init__(
        self,
        state: DaemonState,
        modes: ModeChanges,
        history: CommandHistory,
        evidence: Callable[[], Evidence],
    ) -> None:
        self.history = history
        self._gather = evidence
        self._state = state
        self._modes = modes
        self._turn = asyncio.Lock()
        self._at_work = ""
        self._tasks: set[asyncio.Task[Result]] = set()
        self._senders = Senders()
        self._reverter = LeverReverter(_REVERT_TIMEOUT_S)

    @property
    def evidence(self) -> Evidence:
        """The current evidence for and against raising the mode."""
        return self._gather()

    async def execute(self, command: Command, uid: int) -> Result:
        """Execute a command when the previous one is done, and return its result.

        A command that ends the acting does so immediately, even if another is in progress.

        Args:
            command: the command.
            uid: number of the authorised user who sent it.

        Raises:
            StillAtWorkError: it is not done in time and continues, or another is in progress.
        """
        name = name_of(command)
        others = len(self._tasks)
        if others >= (_MAX_WAITING if self._ends_acting(command) else 1):
            raise StillAtWorkError(f"{self._at_work} is in progress: try again when it is done")
        work = self._execute(command, uid)
        task = asyncio.create_task(work, name=f"command-{name}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        done, _ = await asyncio.wait([task], timeout=TIMEOUT_S)
        if not done:
            ended = "; nothing more is changed in the batch system"
            more = ended if self._ends_acting(command) else ""
            raise StillAtWorkError(f"{name} is not done after {TIMEOUT_S:g} s, and continues{more}")
        return task.result()

    def stop(self) -> None:
        """Cancel the commands in progress because the daemon ends."""
        for task in self._tasks:
            task.cancel()

    def _ends_acting(self, command: Command) -> bool:
        mode = command.mode if isinstance(command, SetMode) else _SHADOW
        return not isinstance(command, Promote) and mode not in ACTING_MODES

    async def _execute(self, command: Command, uid: int) -> Result:
        name, at_s, mode = name_of(command), time.time(), self._modes.mode
        lowerings = self._modes.lowerings
        sender = await self._senders.sender(uid)
        notes: list[str] = []
        try:
            if self._ends_acting(command) and mode in ACTING_MODES:
                to = command.mode if isinstance(command, SetMode) else _SHADOW
                notes = await self._modes.stop_acting(self._limit(to, command, sender))
            async with self._turn:
                self._at_work = f"{name} by user {uid}"
                result = await self._at_its_turn(command, sender, lowerings)
            first, *rest = result.text
            text = list(dict.fromkeys((first, *notes, *rest)))
            result = msgspec.structs.replace(result, text=text)
        except OutriderError as error:
            result = self._result(command, FAILED, mode, [str(error)])
        except Exception as error:  # a command must not end the daemon
            log.exception("command_failed", command=name)
            why = f"internal error (please report): {type(error).__name__}: {error}; see the log"
            result = self._result(command, FAILED, mode, [why])
        await self.history.record(
            CommandRecord(
                at_s, name, uid, sender.user, result.from_mode, result.mode, result.outcome,
                one_line(command.why, MAX_WHY), "; ".join(result.text),
            )
        )  # fmt: skip
        return result

    async def _at_its_turn(self, command: Command, sender: Sender, lowerings: int) -> Result:
        if isinstance(command, Promote):
            return await self._promote(command, sender, lowerings)
        if isinstance(command, Release):
            return await self._release(command, sender)
        return await self._set_mode(command, sender)

    async def _set_mode(self, command: SetMode, sender: Sender) -> Result:
        mode, to = self._modes.mode, command.mode
        if rank(to) > rank(mode):
            why = (
                f"the mode is {mode}, and a command only lowers it; `outrider promote` climbs, "
                f"step by step, up to the configuration's ({self._modes.configured})"
            )
            return self._result(command, REFUSED, mode, [why])
        if to == CANARY and not acting_of(self._state.configured.config).has_canary:
            why = (
                "there is no canary; expected some of canary_clusters, canary_users, "
                'canary_vos, canary_fraction below [acting], or canary_by = "days"'
            )
            return self._result(command, REFUSED, mode, [why])
        notes = await self._modes.lower(self._limit(to, command, sender))
        change = f"the mode was {mode} and is {to}" if to != mode else f"the mode is {to}"
        holds = "this holds over restarts and reloads; `outrider promote` climbs again"
        return self._result(command, DONE, mode, [change, *notes, holds])

    async def _promote(self, command: Promote, sender: Sender, lowerings: int) -> Result:
        evidence, mode = self.evidence, self._modes.mode
        to = evidence.next_mode
        if evidence.against or to is None:
            return self._result(command, REFUSED, mode, evidence.against, evidence)
        acting = acting_of(self._state.configured.config)
        at_the_top = to == self._modes.configured and not acting.promote_first
        limit = None if at_the_top else self._limit(to, command, sender)
        await self._modes.climb(limit, lowerings)
        return self._result(command, DONE, mode, [f"the mode was {mode} and is {to}"], evidence)

    async def _release(self, command: Release, sender: Sender) -> Result:
        state, mode, text = self._state, self._modes.mode, []
        if rank(mode) > rank(_SHADOW):
            notes = await self._modes.lower(self._limit(_SHADOW, command, sender))
            fell = (
                f"the mode was {mode} and is {_SHADOW}; otherwise the changes would be made again"
            )
            text = [fell, *notes, "`outrider promote` climbs again"]
        levers = make_levers(state.adapters, state.recording.folder)
        released = await self._reverter.take(levers)
        text += [one.sentence for one in released] or ["no adapter here can change anything"]
        outcome = FAILED if any(one.problem for one in released) else DONE
        result = self._result(command, outcome, mode, text)
        return msgspec.structs.replace(result, released=released)

    def _limit(self, most: str, command: Command, sender: Sender) -> ModeLimit:
        return ModeLimit(
            most, time.time(), self._modes.mode, BY_COMMAND, one_line(command.why, MAX_WHY), *sender
        )

    def _result(
        self,
        command: Command,
        outcome: Literal["done", "refused", "failed"],
        from_mode: str,
        text: list[str],
        evidence: Evidence | None = None,
    ) -> Result:
        return Result(
            command=name_of(command),
            outcome=outcome,
            from_mode=from_mode,
            mode=self._modes.mode,
            text=text,
            evidence=evidence,
        )
