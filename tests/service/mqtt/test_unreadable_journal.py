"""An unreadable journal is logged once, and shown in the status until it is readable."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from outrider.journal import Entry
from outrider.model.errors import LedgerError
from outrider.service.config.declarations import Config
from outrider.service.config.optional_tables import PublishSettings
from outrider.service.journal.recording import Recording
from outrider.service.mqtt import publisher as module
from outrider.service.mqtt.publisher import Publisher
from tests.fixtures.small_figures import small_figures
from tests.journal.samples import decision
from tests.service.mqtt.test_rows_confirmed import Broker


async def test_it_is_told_once_until_it_can_be_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    core, client = small_figures(), Broker()
    told: Any = client
    recording = Recording(tmp_path / "state")
    try:
        publisher = Publisher(recording, lambda: core)
        settings = PublishSettings(host="broker", site="north")
        publisher.follow(Config(mqtt=settings))
        await publisher._place.begin()
        recorded = await recording.submit(Entry(decisions=[decision(1.0, "1.0")]))
        await asyncio.wrap_future(recorded)

        def unreadable(*_: Any) -> None:
            raise LedgerError("the disk is gone")

        for _ in range(2):
            with monkeypatch.context() as broken, capture_logs() as logs:
                broken.setattr(module, "read_piece", unreadable)
                for _ in range(3):
                    assert await publisher._publish_piece(told, settings) == module._UNREADABLE_S
                figures = publisher.figures()
                assert figures is not None
                assert figures["failure"] == "the disk is gone"
            assert [line["event"] for line in logs] == ["publishing_failed"]
            await publisher._publish_piece(told, settings)
            assert publisher._failure is None
            recorded = await recording.submit(Entry(decisions=[decision(2.0, "2.0")]))
            await asyncio.wrap_future(recorded)
        assert [seq for _, seq in client.heard] == [1, 2]
    finally:
        recording.close(10.0)
