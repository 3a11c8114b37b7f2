"""What was heard of each machine, so that nothing counts twice and old news does not win."""

import datetime as dt
import re
from collections import OrderedDict
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

from outrider_adapters.mqtt.messages import NoNews, Refused

LATENESS_S: Final = 5.0
"""Messages about one machine may overtake each other by so much; the merger orders them."""

AHEAD_S: Final = 10.0
"""How much a publisher's clock may be ahead of ours."""

OLDEST_S: Final = 7 * 86_400.0
"""What is dated earlier comes from a clock that was never set."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}")
_REMEMBERED: Final = 32


class Message(NamedTuple):
    """What came over the connection, and when (Unix seconds, our clock)."""

    topic: str
    payload: bytes
    retained: bool
    arrived_s: float


class _Topic:
    """What was heard on one topic: the newest time, and the last messages."""

    __slots__ = ("_last", "newest_s")

    def __init__(self) -> None:
        self.newest_s = float("-inf")
        self._last: dict[tuple[float, int], None] = {}

    def has_told(self, time_s: float, payload: bytes) -> bool:
        """Return whether this message came before; from now on it did."""
        mark = time_s, hash(payload)  # not the payload itself: a hostile one is long
        if mark in self._last:
            return True
        self._last[mark] = None
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        self.newest_s = max(self.newest_s, time_s)
        return False


class Heard:
    """What was heard of each machine since the adapter was opened.

    Args:
        max_machines: how many names there may be.
    """

    def __init__(self, max_machines: int) -> None:
        self._names: Names[dict[str, _Topic]] = Names(max_machines)

    def meet(self, machine: str, at_s: float, metered: bool = False) -> dict[str, _Topic]:
        """The topics of a machine, perhaps of a new one.

        Args:
            machine: its name.
            at_s: when it was heard (Unix seconds).
            metered: by a meter's reading, which makes no machine.

        Raises:
            Refused: that is no name of a machine, or there are too many.
        """
        if self._names.find(machine) is None and not _NAME.fullmatch(machine):
            raise Refused("machine_name", "expected letters, digits, . _ - @ :, max. 128")
        return self._names.hear(machine, {}, at_s, metered)

    def knows(self, machine: str) -> bool:
        """Return whether a name is among those that are remembered."""
        return self._names.find(machine) is not None

    def leave(self, machine: str) -> None:
        """A machine belongs to the site no more."""
        self._names.leave(machine)

    def time_of(
        self, machine: str, what: str, message: Message, time: float | dt.datetime | None
    ) -> float:
        """Return when that happened, in Unix seconds; without a time of its own, on arrival.

        A retained message tells what holds, not what happens: it counts from its arrival. It
        comes again with every connection, so it is news only if it is newer than what was heard.

        Raises:
            NoNews: it was told before, or something newer is known.
            Refused: the machine has no good name, or its clock is wrong.
        """
        own_s = time.timestamp() if isinstance(time, dt.datetime) else time
        at_s = message.arrived_s if own_s is None else own_s
        if at_s > message.arrived_s + AHEAD_S:
            ahead_s = at_s - message.arrived_s
            raise Refused("from_the_future", f"{ahead_s:.0f} s ahead; is its clock right?")
        if at_s < message.arrived_s - OLDEST_S and not message.retained:
            raise Refused("too_old", "dated more than a week ago; is its clock right?")
        known = self.meet(machine, message.arrived_s, what == "power")
        topic = known.get(what)
        if topic is not None and topic.newest_s > message.arrived_s + AHEAD_S:
            topic = None  # our own clock was ahead when that came, and was put back
        if topic is None:
            topic = known[what] = _Topic()
        elif message.retained and (own_s is None or own_s <= topic.newest_s):
            raise NoNews("told_before")
        if at_s < topic.newest_s - LATENESS_S:
            raise NoNews("older_than_known")
        if topic.has_told(at_s, message.payload):
            raise NoNews("told_before")
        return message.arrived_s if message.retained else at_s


# -- names -----------------------------------------------------------------------------------------
# The names that were heard: a bounded number, of which those that say nothing more give way.
#
# A name costs room for as long as the adapter lives, and in the site's state for longer. So who
# may publish cannot invent names without end; but names that were junk, or left, must not keep out
# those that come later.

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
