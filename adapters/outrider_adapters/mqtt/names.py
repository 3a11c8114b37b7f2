"""The names that were heard: a bounded number, of which those that say nothing more give way.

A name costs room for as long as the adapter lives, and in the site's state for longer. So who may
publish cannot invent names without end; but names that were junk, or left, must not keep out those
that come later.
"""

from collections import OrderedDict
from math import inf
from typing import Final, Generic, TypeVar

from outrider_adapters.mqtt.messages import Refused

METERED_FOR_S: Final = 3_600.0
LEFT_FOR_S: Final = 3_600.0
SILENT_FOR_S: Final = 86_400.0
"""A meter's name that is not heard for so long, what left, and what is silent, in this order: they
give way where there is no room."""
_CLOCK_BACK_S: Final = 60.0

T = TypeVar("T")


class _Name(Generic[T]):
    __slots__ = ("heard_s", "kept")

    def __init__(self, kept: T, heard_s: float) -> None:
        self.kept = kept
        self.heard_s = heard_s


class Names(Generic[T]):
    """What is kept of each name, by three kinds: metered only, present, and gone.

    A name that only meters know makes no machine, and gives way to one that is more at once.

    Args:
        most: how many names there may be.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._metered: OrderedDict[str, _Name[T]] = OrderedDict()
        self._present: OrderedDict[str, _Name[T]] = OrderedDict()
        self._gone: OrderedDict[str, _Name[T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._metered) + len(self._present) + len(self._gone)

    def find(self, name: str) -> T | None:
        """What is kept of a name; None of one that is not known."""
        for known in (self._present, self._metered, self._gone):
            if name in known:
                return known[name].kept
        return None

    def hear(self, name: str, fresh: T, at_s: float, metered: bool) -> T:
        """A name is heard, perhaps for the first time; returns what is kept of it.

        Args:
            name: of a machine.
            fresh: is kept of it from now on, if it is not known.
            at_s: when (Unix seconds).
            metered: by a meter's reading.

        Raises:
            Refused: there is no room for it.
        """
        for known in (self._present, self._metered, self._gone):
            entry = known.pop(name, None)
            if entry is not None:
                entry.heard_s = at_s
                break
        else:
            if len(self) >= self._most:
                self._make_room(at_s, metered)
            entry = _Name(fresh, at_s)
            known = self._metered
        stays = metered and known is self._metered
        (self._metered if stays else self._present)[name] = entry
        return entry.kept

    def leave(self, name: str) -> None:
        """A name says that it belongs to the site no more."""
        entry = self._present.pop(name, None)
        if entry is not None:
            self._gone[name] = entry

    def _make_room(self, at_s: float, metered: bool) -> None:
        for known, after_s in (
            (self._metered, METERED_FOR_S if metered else -inf),
            (self._gone, LEFT_FOR_S),
            (self._present, SILENT_FOR_S),
        ):
            if known:
                first = next(iter(known))
                silent_s = at_s - known[first].heard_s
                if silent_s > after_s or silent_s < -_CLOCK_BACK_S:
                    del known[first]
                    return
        raise Refused("too_many_machines", f"max_machines is {self._most}")
