"""The place in the journal moves on as far as the broker confirmed, and not one row further."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from outrider.journal import Entry
from outrider.model.errors import PeerError
from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import PublishSettings
from outrider.service.journal.recording import Recording
from outrider.service.mqtt.publisher import Publisher
from tests.fixtures.small_figures import small_figures
from tests.journal.samples import decision, outcome


class Broker:
    """A client for a publisher; while `is_ill`, the third row is never confirmed."""

    is_ill = False
    pending_calls_threshold = 0

    def __init__(self) -> None:
        self.heard: list[tuple[str, int]] = []

    async def publish(self, topic: str, payload: bytes, qos: int) -> None:
        seq = json.loads(payload)["seq"]
        assert qos == 1
        if self.is_ill and seq == 3:
            raise PeerError("the link is lost")
        self.heard.append((topic, seq))


async def test_rows_before_a_broken_link_are_not_told_again_and_the_others_are(
    tmp_path: Path,
) -> None:
    core, broker = small_figures(), Broker()
    client: Any = broker
    recording = Recording(tmp_path / "state")
    try:
        publisher = Publisher(recording, lambda: core)
        settings = PublishSettings(host="broker", site="north")
        assert publisher.figures() is None, "nothing is to be published"
        publisher.follow(Config(mqtt=settings))
        figures = publisher.figures()
        assert figures is not None
        assert (figures["connected"], figures["failure"]) == (False, None)
        assert figures["topic"] == "outrider/north"
        place = publisher._place
        await place.begin()
        rows = [decision(float(n), f"{n}.0") for n in range(4)]
        recorded = await recording.submit(Entry(decisions=rows, outcomes=[outcome(5.0, "4.0")]))
        await asyncio.wrap_future(recorded)
        broker.is_ill = True
        with pytest.raises(PeerError, match="the link is lost"):
            await publisher._publish_piece(client, settings)
        assert place.seq == 2
        assert place.figures()["published"] == {"decisions": 2, "evictions": 0}
        broker.is_ill, broker.heard = False, []
        pause_s = await publisher._publish_piece(client, settings)
        assert broker.heard == [
            ("outrider/north/decisions", 3),
            ("outrider/north/decisions", 4),
            ("outrider/north/evictions", 5),
        ]
        assert place.figures()["published"] == {"decisions": 4, "evictions": 1}
        assert (place.seq, place.behind) == (5, 0)
        assert pause_s == pytest.approx(3 / settings.most_per_s)
        assert await publisher._publish_piece(client, settings) == 0.2, "there is nothing more"
    finally:
        recording.close(10.0)
