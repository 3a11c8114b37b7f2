"""``[mqtt]``: to which broker the daemon publishes, below which topic, and how fast."""

from typing import Annotated, Final

from msgspec import Meta

from outrider.model.broker_settings import BrokerSettings

_WILD: Final = "+#"


class PublishSettings(BrokerSettings, frozen=True, kw_only=True):
    """Publishing over MQTT: mode and health, decisions and evictions; off without this table."""

    topic: Annotated[
        str, Meta(min_length=1, description="The first part of every topic; may have slashes.")
    ] = "outrider"
    site: Annotated[
        str,
        Meta(
            min_length=1,
            description="The second part of every topic: this site among others on the broker. "
            "Two daemons must not share it.",
        ),
    ] = "site"
    health_every_s: Annotated[
        float, Meta(ge=1, description="Seconds between two messages on the topic `health`.")
    ] = 30.0
    most_per_s: Annotated[
        float,
        Meta(
            gt=0,
            description="Most decisions and evictions published in a second: what a broker that "
            "was away gets at once when it is back.",
        ),
    ] = 500.0

    def __post_init__(self) -> None:
        super().__post_init__()
        for key, value, forbidden in (
            ("topic", self.topic, _WILD), ("site", self.site, _WILD + "/")
        ):  # fmt: skip
            if any(sign in value for sign in forbidden) or value != value.strip():
                raise ValueError(
                    f"{key} = {value!r}: a topic's part has none of {' '.join(forbidden)} and no "
                    'space around it; right would be a name like "north-campus"'
                )
        if self.site == "in":
            raise ValueError(
                'site = "in": machines tell Outrider what happens below that name; right would be '
                'a name like "north-campus"'
            )
        if self.topic.startswith(("$", "/")) or self.topic.endswith("/"):
            raise ValueError(
                f"topic = {self.topic!r}: must not begin with $ or /, nor end with /; right would "
                'be a name like "outrider"'
            )

    @property
    def base(self) -> str:
        """What all topics of the daemon begin with, without the last slash."""
        return f"{self.topic}/{self.site}"
