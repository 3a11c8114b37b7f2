"""Convert messages to events, by topic; refuse invalid messages and ignore repeated ones."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from outrider.api import MachineSpec, NamedEvent
from outrider.api import events as ev
from outrider_adapters.mqtt import messages
from outrider_adapters.mqtt.deduplicator import Heard, Message
from outrider_adapters.mqtt.messages import ANYTHING, NoNews, Refused, decoded, watts_of
from outrider_adapters.mqtt.settings import MeterSettings, MqttSettings

STATES: Final = {
    "usable": ev.USABLE,
    "drained": ev.DRAINED,
    "asleep": ev.ASLEEP,
    "awake": ev.WOKEN,
    "rebooted": ev.REBOOTED,
    "left": ev.LEFT,
}
_MAX_TOPIC_CHARS: Final = 80


class Meaning:
    """Interpreter of messages, one after the other.

    Args:
        settings: base topic, meters, and maximum number of machines.

    Attributes:
        rejected, ignored: counts since `take_counts`; see `outrider.api.Batch`.
        complaint: topic and fault of the last refused message, or empty.
    """

    def __init__(self, settings: MqttSettings) -> None:
        self.rejected: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.complaint = ""
        self._prefix = f"{settings.base}/"
        self._power_prefix = f"{self._prefix}power/"
        self._meters = Meters(settings.meters)
        self._max_machines = settings.max_machines
        self._heard = Heard(settings.max_machines)
        self._drained: set[str] = set()
        self._forms = {
            "owner": self._owner,
            "state": self._state,
            "power": self._power,
            "machine": self._machine,
        }

    def events_of(self, message: Message) -> list[NamedEvent]:
        """Return the events that a message means; none if it is refused, which is counted."""
        try:
            if message.topic.startswith(self._prefix):
                return self._ours(message)
            return self._metered(message)
        except NoNews as kind:
            self.ignored[str(kind)] += 1
            return []
        except Refused as refused:
            self.rejected[refused.reason] += 1
            self.complaint = f"{message.topic[:_MAX_TOPIC_CHARS]!r}: {refused.why}"
            return []

    def _ours(self, message: Message) -> list[NamedEvent]:
        what, _, machine = message.topic.removeprefix(self._prefix).partition("/")
        form = self._forms.get(what)
        if form is None:
            raise Refused("unknown_topic", f"expected {self._prefix}owner/<machine>, ...")
        if not message.payload:  # this is how a retained message is removed
            raise NoNews("cleared")
        return form(machine, message)

    def _metered(self, message: Message) -> list[NamedEvent]:
        machine, watts = self._meters.read(message.topic, message.payload)
        self._heard.meet(machine, message.arrived_s, metered=True)
        return [(message.arrived_s, ev.POWER, machine, watts)]

    # -- our own topics -----------------------------------------------------------------------

    def _owner(self, machine: str, message: Message) -> list[NamedEvent]:
        body = decoded(messages.OWNER, message.payload)
        time_s = self._heard.time_of(machine, "owner", message, body.time)
        if body.present:
            return [(time_s, ev.OWNER_CAME, machine, None)]
        went: NamedEvent = (time_s, ev.OWNER_WENT, machine, None)
        if body.usable and machine not in self._drained:
            return [went, (time_s, ev.USABLE, machine, None)]
        return [went]

    def _state(self, machine: str, message: Message) -> list[NamedEvent]:
        body = decoded(messages.STATE, message.payload)
        kind = STATES.get(body.state)
        if kind is None:
            raise Refused("unknown_state", f"no such state; known: {', '.join(STATES)}")
        time_s = self._heard.time_of(machine, "state", message, body.time)
        if kind == ev.DRAINED:
            self._drained.add(machine)
            if len(self._drained) > self._max_machines:  # some of these names were evicted
                self._drained = set(filter(self._heard.knows, self._drained))
        elif kind in (ev.USABLE, ev.LEFT):
            self._drained.discard(machine)
        if kind == ev.LEFT:
            self._heard.leave(machine)
        return [(time_s, kind, machine, None)]

    def _power(self, machine: str, message: Message) -> list[NamedEvent]:
        body = decoded(messages.POWER, message.payload)
        watts, time = (body, None) if isinstance(body, float) else (body.watts, body.time)
        watts = watts_of(watts)
        time_s = self._heard.time_of(machine, "power", message, time)
        return [(time_s, ev.POWER, machine, watts)]

    def _machine(self, machine: str, message: Message) -> list[NamedEvent]:
        body = decoded(messages.MACHINE, message.payload)
        self._heard.meet(machine, message.arrived_s)
        spec = MachineSpec(
            cluster=body.cluster,
            cpus=body.cpus,
            active_w=body.active_w,
            idle_w=body.idle_w,
            sleep_w=body.sleep_w,
            usable=machine not in self._drained,
        )
        return [(message.arrived_s, ev.JOINED, machine, spec)]

    def is_reading(self, topic: str) -> bool:
        """Return whether a topic is a meter's, where only the newest message matters."""
        if topic.startswith(self._prefix):
            return topic.startswith(self._power_prefix)
        return True

    # -- for batches --------------------------------------------------------------------------

    def take_counts(self) -> tuple[dict[str, int], dict[str, int]]:
        """Return the counts of rejected and ignored messages since the last call."""
        counts = dict(self.rejected), dict(self.ignored)
        self.rejected.clear()
        self.ignored.clear()
        return counts

    def save(self) -> dict[str, Any]:
        """Return the state that a restart needs, as plain data."""
        return {"drained": sorted(self._drained)}

    def restore(self, saved: Any) -> None:
        """Resume from the value of `save`, or from nothing (None). Raises `ValueError`."""
        if saved is None:
            return
        if not isinstance(saved, dict) or not isinstance(saved.get("drained"), list):
            raise ValueError(f"no cursor of the mqtt adapter: {saved!r}")
        self._drained = {name for name in saved["drained"] if isinstance(name, str)}


# -- meters ----------------------------------------------------------------------------------------
# Meters that publish in their own form: smart plugs, whose topics name the plug.


class _Kind(NamedTuple):
    levels: list[str]
    name_at: int
    keys: list[str]
    machines: dict[str, str]


class Meters:
    """Kinds of meters of a site.

    Args:
        meters: settings by topic filter; see `MqttSettings`.
    """

    def __init__(self, meters: Mapping[str, MeterSettings]) -> None:
        self._kinds = [
            _Kind(levels, levels.index("+"), [k for k in kind.watts.split(".") if k], kind.machines)
            for levels, kind in ((topic.split("/"), kind) for topic, kind in meters.items())
        ]

    def read(self, topic: str, payload: bytes) -> tuple[str, float]:
        """Return the machine and watts of a meter's message.

        Raises:
            NoNews: it is the meter of no machine, or the message contains no watts.
            Refused: no meter has that topic, or its watts are invalid.
        """
        kind = self._kind(levels := topic.split("/"))
        name = levels[kind.name_at]
        machine = kind.machines.get(name) if kind.machines else name
        if machine is None:
            raise NoNews("meter_of_no_machine")
        value: Any = decoded(ANYTHING, payload)
        for key in kind.keys:
            if not isinstance(value, dict) or key not in value:
                raise NoNews("without_watts")  # plugs publish other values on the same topic
            value = value[key]
        return machine, watts_of(value)

    def _kind(self, levels: list[str]) -> _Kind:
        for kind in self._kinds:
            if len(kind.levels) == len(levels) and all(
                wanted in ("+", level) for wanted, level in zip(kind.levels, levels, strict=True)
            ):
                return kind
        raise Refused("unknown_topic", "no meter has this topic")
