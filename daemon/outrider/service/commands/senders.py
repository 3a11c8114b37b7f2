"""Who gives a command, by name: the user database may be slow, and a command must not be."""

import asyncio
import pwd

from outrider.service.commands.command import Sender
from outrider.service.host.own_thread import in_own_thread


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
