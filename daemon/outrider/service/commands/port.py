"""What the web may ask of commands: who looks at the daemon's view finds it there."""

from typing import Protocol

from outrider.service.commands.command import Command, Result
from outrider.service.commands.evidence import Evidence
from outrider.service.commands.history import CommandHistory


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
