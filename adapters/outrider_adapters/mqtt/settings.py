"""The settings of the `mqtt` adapter; those of the connection are `outrider.api.BrokerSettings`."""

from typing import Annotated

import msgspec
from msgspec import Meta

from outrider.api import AdapterSettings, BrokerSettings


class MeterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to read the topics of a kind of power meter that does not speak our own form.

    Attributes:
        watts: where the watts stand in the JSON: keys joined by dots. Empty: the payload is the
            number itself.
        machines: from what stands at the filter's ``+`` to the machine's name. Empty: it is the
            machine's name.
    """

    watts: str = ""
    machines: dict[str, str] = {}


class MqttSettings(AdapterSettings, BrokerSettings, frozen=True, kw_only=True):
    """Which broker to listen to, and to what."""

    base: Annotated[
        str,
        Meta(
            pattern=r"^[^/#+\s][^#+\s]*(?<!/)$",
            description="The topics are <base>/owner/<machine>, .../state/..., .../power/... and "
            ".../machine/...; change it where several sites share a broker.",
        ),
    ] = "outrider/in"
    meters: Annotated[
        dict[str, MeterSettings],
        Meta(
            description="Power meters with topics of their own, by topic filter with one + where "
            'the meter is named: {"tele/+/SENSOR" = {watts = "ENERGY.Power", machines = '
            '{plug7 = "lab-7"}}}. watts: keys joined by dots, empty where the payload is the '
            "number. machines: meter to machine; empty where the meter has the machine's name.",
        ),
    ] = msgspec.field(default_factory=dict)
    max_machines: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Machines beyond so many are turned away, unless one of them left, or was "
            "silent for a day: who may publish cannot invent names without end.",
        ),
    ] = 5000

    def __post_init__(self) -> None:
        super().__post_init__()
        for topic in self.meters:
            levels = topic.split("/")
            if levels.count("+") != 1 or any("#" in x or ("+" in x and x != "+") for x in levels):
                raise ValueError(
                    f'meters: "{topic}": expected a topic with one level that is + and '
                    'none with #, like "tele/+/SENSOR"'
                )
            if topic.startswith(f"{self.base}/"):
                raise ValueError(
                    f'meters: "{topic}" is below base, whose topics have their own form; right '
                    f'would be a topic that does not begin with "{self.base}/"'
                )
