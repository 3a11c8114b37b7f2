"""Whether the broker to publish to lets us in, and passes on what we publish there."""

import asyncio
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from outrider.cli.findings import Check
from outrider.model.errors import PeerError

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig

PROBE_TOPIC: Final = "doctor"
"""Below our own topics: one empty message, not retained, is published there and waited for."""


def check_broker(loaded: "LoadedConfig") -> Iterator[Check]:
    """One check, where the configuration has a table [mqtt]."""
    from outrider.api.broker_probe import probe_topic

    settings = loaded.config.mqtt
    if settings is None:
        return
    topic = f"{settings.base}/{PROBE_TOPIC}"
    try:
        probe = asyncio.run(probe_topic(settings, f"{settings.site}-doctor", topic))
    except PeerError as error:
        yield Check(
            "mqtt", "fail", str(error),
            "start the broker, or mend [mqtt]; what is decided meanwhile is published later",
        )  # fmt: skip
        return
    who = settings.username or "clients without a name"
    if probe.comes_back:
        found = f"{settings.address}: {who} may write and read {settings.base}/#"
        yield Check("mqtt", "ok", found)
        return
    denied = {
        True: f"takes what {who} publishes to {topic}, and does not let {who} read it",
        False: f"{who} may not publish to {topic}",
        None: f"what {who} publishes to {topic} does not come back: writing or reading is denied",
    }[probe.may_write]
    yield Check(
        "mqtt", "fail", f"{settings.address}: {denied}",
        f"let {who} write and read there; in Mosquitto's acl_file: "
        f"topic readwrite {settings.base}/#",
    )  # fmt: skip
