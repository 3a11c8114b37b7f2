"""Meters that publish in a form of their own: smart plugs, whose topics name the plug."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from outrider_adapters.mqtt.messages import ANYTHING, NoNews, Refused, decoded, watts_of
from outrider_adapters.mqtt.settings import MeterSettings


class _Kind(NamedTuple):
    levels: list[str]
    name_at: int
    keys: list[str]
    machines: dict[str, str]


class Meters:
    """The kinds of meters of a site.

    Args:
        meters: by topic filter, as in `MqttSettings`.
    """

    def __init__(self, meters: Mapping[str, MeterSettings]) -> None:
        self._kinds = [
            _Kind(levels, levels.index("+"), [k for k in kind.watts.split(".") if k], kind.machines)
            for levels, kind in ((topic.split("/"), kind) for topic, kind in meters.items())
        ]

    def read(self, topic: str, payload: bytes) -> tuple[str, float]:
        """What a meter says: (machine, watts).

        Raises:
            NoNews: it is the meter of no machine, or the message holds no watts.
            Refused: no meter has that topic, or its watts are none.
        """
        kind = self._kind(levels := topic.split("/"))
        name = levels[kind.name_at]
        machine = kind.machines.get(name) if kind.machines else name
        if machine is None:
            raise NoNews("meter_of_no_machine")
        value: Any = decoded(ANYTHING, payload)
        for key in kind.keys:
            if not isinstance(value, dict) or key not in value:
                raise NoNews("without_watts")  # plugs tell other things on the same topic
            value = value[key]
        return machine, watts_of(value)

    def _kind(self, levels: list[str]) -> _Kind:
        for kind in self._kinds:
            if len(kind.levels) == len(levels) and all(
                wanted in ("+", level) for wanted, level in zip(kind.levels, levels, strict=True)
            ):
                return kind
        raise Refused("unknown_topic", "no meter has this topic")
