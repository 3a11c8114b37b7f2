"""What an adapter is at, kept where it outlives the process."""

from typing import Any


class InProgress:
    """What an adapter is at, for the next process in case this one dies in it.

    A record may cost so much that the service manager ends the daemon, or may end it outright:
    without a note of it the next process would read it again, and end again. This base keeps
    nothing; the daemon gives every adapter one that does.

    Attributes:
        left: what the process before was at when it died, as JSON types; None: nothing.
    """

    left: Any = None

    def note(self, what: Any) -> None:
        """Now it is at this (JSON types, some hundred bytes); None: at nothing.

        May be called in any thread, a few thousand times a second, and never raises.
        """
