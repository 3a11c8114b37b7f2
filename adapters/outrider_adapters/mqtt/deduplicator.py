"""Deduplicate messages by machine, and reject messages older than a known one."""

import datetime as dt
import re
from collections import OrderedDict
from math import inf
from typing import Final, Generic, NamedTuple, TypeVar

from outrider_adapters.mqtt.messages import NoNews, Refused

LATENESS_S: Final = 5.0
"""Seconds by which messages about one machine may overtake each other; the merger sorts them."""

AHEAD_S: Final = 10.0
"""Seconds by which a publisher's clock may be ahead of ours."""

OLDEST_S: Final = 7 * 86_400.0
"""Oldest accepted message, in seconds; an older date comes from a clock that was never set."""

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@:-]{0,127}")
_REMEMBERED: Final = 32


class Message(NamedTuple):
    """A received message, with its time of arrival (Unix seconds, our clock)."""

    topic: str
    payload: bytes
    retained: bool
    arrived_s: float


class _Topic:
    """State of one topic: the newest time, and the last messages."""

    __slots__ = ("_last", "newest_s")

    def __init__(self) -> None:
        self.newest_s = float("-inf")
        self._last: dict[tuple[float, int], None] = {}

    def is_repeated(self, time_s: float, payload: bytes) -> bool:
        """Return whether this message came before, and store it."""
        mark = time_s, hash(payload)  # not the payload itself: a hostile one is long
        if mark in self._last:
            return True
        self._last[mark] = None
        if len(self._last) > _REMEMBERED:
            del self._last[next(iter(self._last))]
        self.newest_s = max(self.newest_s, time_s)
        return False


class Heard:
    """Messages of each machine since the adapter was opened.

    Args:
        max_machines: maximum number of names.
    """

    def __init__(self, max_machines: int) -> None:
        self._names: Names[dict[str, _Topic]] = Names(max_machines)

    def meet(self, machine: str, at_s: float, metered: bool = False) -> dict[str, _Topic]:
        """Return the topics of a machine, perhaps of a new one.

        Args:
            machine: the machine's name.
            at_s: time of the message (Unix seconds).
            metered: the message is a meter's reading, which makes no machine.

        Raises:
            Refused: that is no name of a machine, or there are too many.
        """
        if self._names.find(machine) is None and not _NAME.fullmatch(machine):
            raise Refused("machine_name", "expected letters, digits, . _ - @ :, max. 128")
        return self._names.record(machine, {}, at_s, metered)

    def knows(self, machine: str) -> bool:
        """Return whether a name is known."""
        return self._names.find(machine) is not None

    def leave(self, machine: str) -> None:
        """Record that a machine no longer belongs to the site."""
        self._names.leave(machine)

    def time_of(
        self, machine: str, what: str, message: Message, time: float | dt.datetime | None
    ) -> float:
        """Return the time of a message in Unix seconds; without its own time, that of arrival.

        A retained message describes a state, not an event: it counts from its arrival. It comes
        again with every connection, so it is news only if it is newer than the known messages.

        Raises:
            NoNews: it was received before, or something newer is known.
            Refused: the machine has no good name, or its clock is wrong.
        """
        own_s = time.timestamp() if isinstance(time, dt.datetime) else time
        at_s = message.arrived_s if own_s is None else own_s
        if at_s > message.arrived_s + AHEAD_S:
            ahead_s = at_s - message.arrived_s
            raise Refused("from_the_future", f"{ahead_s:.0f} s ahead; check the machine's clock")
        if at_s < message.arrived_s - OLDEST_S and not message.retained:
            raise Refused("too_old", "dated more than a week ago; check the machine's clock")
        known = self.meet(machine, message.arrived_s, what == "power")
        topic = known.get(what)
        if topic is not None and topic.newest_s > message.arrived_s + AHEAD_S:
            topic = None  # our own clock was ahead when that came, and was corrected
        if topic is None:
            topic = known[what] = _Topic()
        elif message.retained and (own_s is None or own_s <= topic.newest_s):
            raise NoNews("told_before")
        if at_s < topic.newest_s - LATENESS_S:
            raise NoNews("older_than_known")
        if topic.is_repeated(at_s, message.payload):
            raise NoNews("told_before")
        return message.arrived_s if message.retained else at_s


# -- names -----------------------------------------------------------------------------------------
# Bounded set of known names; silent names are evicted for new ones.
#
# A name needs memory as long as the adapter lives, and longer in the site's state. So a publisher
# must not be able to invent names without end. But invalid names, or names that left, must not
# block later ones.

METERED_FOR_S: Final = 3_600.0
LEFT_FOR_S: Final = 3_600.0
SILENT_FOR_S: Final = 86_400.0
"""Seconds after which a meter's name, a departed one and a silent one may be evicted."""
_CLOCK_BACK_S: Final = 60.0

T = TypeVar("T")


class _Name(Generic[T]):
    __slots__ = ("heard_s", "kept")

    def __init__(self, kept: T, heard_s: float) -> None:
        self.kept = kept
        self.heard_s = heard_s


class Names(Generic[T]):
    """Values by name, for three kinds of names: metered only, present, and gone.

    A name known only from meters makes no machine, and is evicted immediately for one that does.

    Args:
        max_names: maximum number of names.
    """

    def __init__(self, max_names: int) -> None:
        self._max_names = max_names
        self._metered: OrderedDict[str, _Name[T]] = OrderedDict()
        self._present: OrderedDict[str, _Name[T]] = OrderedDict()
        self._gone: OrderedDict[str, _Name[T]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._metered) + len(self._present) + len(self._gone)

    def find(self, name: str) -> T | None:
        """Return the value of a name; None if it is unknown."""
        for known in (self._present, self._metered, self._gone):
            if name in known:
                return known[name].kept
        return None

    def record(self, name: str, fresh: T, at_s: float, metered: bool) -> T:
        """Record a message from a name, perhaps a new one, and return the name's value.

        Args:
            name: name of a machine.
            fresh: the value, if the name is new.
            at_s: time of the message (Unix seconds).
            metered: the message is a meter's reading.

        Raises:
            Refused: there are too many names.
        """
        for known in (self._present, self._metered, self._gone):
            entry = known.pop(name, None)
            if entry is not None:
                entry.heard_s = at_s
                break
        else:
            if len(self) >= self._max_names:
                self._make_room(at_s, metered)
            entry = _Name(fresh, at_s)
            known = self._metered
        stays = metered and known is self._metered
        (self._metered if stays else self._present)[name] = entry
        return entry.kept

    def leave(self, name: str) -> None:
        """Record that a name no longer belongs to the site."""
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
        raise Refused("too_many_machines", f"max_machines is {self._max_names}")
