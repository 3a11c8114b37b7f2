"""Settings of the `mqtt` adapter; `outrider.api.BrokerSettings` has those of the connection."""

from typing import Annotated

import msgspec
from msgspec import Meta

from outrider.api import AdapterSettings, BrokerSettings


class MeterSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings for the topics of a kind of power meter with its own message form.

    Attributes:
        watts: position of the watts in the JSON: keys joined by dots. Empty: the payload is the
            number itself.
        machines: machine's name by the text at the filter's ``+``. Empty: that text is the name.
    """

    watts: str = ""
    machines: dict[str, str] = {}


class MqttSettings(AdapterSettings, BrokerSettings, frozen=True, kw_only=True):
    """Settings of the `mqtt` adapter: the broker and the topics."""

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
            description="Power meters with their own topics, by topic filter with one + where "
            'the meter is named: {"tele/+/SENSOR" = {watts = "ENERGY.Power", machines = '
            '{plug7 = "lab-7"}}}. watts: keys joined by dots, empty where the payload is the '
            "number. machines: meter to machine; empty if the meter has the machine's name.",
        ),
    ] = msgspec.field(default_factory=dict)
    max_machines: Annotated[
        int,
        Meta(
            ge=1,
            le=100_000,
            description="Maximum number of machines. More are refused, unless one of them left, or "
            "was silent for a day: a publisher cannot invent names without end.",
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
                    f'meters: "{topic}" is below base, whose topics have their own form; use '
                    f'a topic that does not begin with "{self.base}/"'
                )
