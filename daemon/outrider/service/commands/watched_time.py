"""For how long a policy has decided beside this site, by mode: evidence that outlives restarts."""

import hashlib
import time
from collections.abc import Callable, Mapping
from typing import Any, Final

import msgspec

from outrider.model.modes import MODES

WATCHED_KEY: Final = "watched"
"""Where the journal keeps it."""
_LONGEST_STEP_S: Final = 60.0
"""Between two looks: a host that slept meanwhile has watched nothing."""


class WatchedTime:
    """Adds up the time in each mode in which every source could be read.

    Args:
        kept: what `plain` gave, as the journal has it; anything else begins at 0.
        clock: seconds that only ever go on.
    """

    def __init__(self, kept: Any = None, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._looked_s: float | None = None
        self._of = ""
        self._watched_s: dict[str, float] = {}
        if isinstance(kept, dict) and isinstance(kept.get("s"), dict):
            self._of = str(kept.get("of", ""))
            for mode, seconds in kept["s"].items():
                if mode in MODES and isinstance(seconds, int | float) and seconds >= 0:
                    self._watched_s[mode] = float(seconds)

    def look(self, mode: str, policies: Mapping[str, Any], counts: bool) -> None:
        """Count the time since the last look.

        Args:
            mode: in force since then.
            policies: with their settings: others begin at 0.
            counts: whether decisions were made, of sources that could be read.
        """
        now_s = self._clock()
        before_s, self._looked_s = self._looked_s, now_s
        of = hashlib.sha256(msgspec.json.encode(policies, order="sorted")).hexdigest()
        if of != self._of:
            self._of, self._watched_s = of, {}
        elif counts and before_s is not None:
            step_s = min(now_s - before_s, _LONGEST_STEP_S)
            self._watched_s[mode] = self._watched_s.get(mode, 0.0) + step_s

    def begin_anew(self) -> None:
        """A guard broke: what was watched before speaks for nothing."""
        self._watched_s = {}

    def at_least(self, mode: str) -> float:
        """Seconds in this mode and those above."""
        return sum(self._watched_s.get(each, 0.0) for each in MODES[MODES.index(mode) :])

    def plain(self) -> dict[str, Any]:
        """Everything as plain data."""
        return {"of": self._of, "s": self._watched_s}
