"""Journals to export from: one of a daemon that watched a simulated campus, and small ones."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from outrider.journal import Entry, Journal
from outrider.model.events import TICK, NamedEvent
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState


def watch(campus: Path, journal: Path, seed: int, policies: Sequence[str] = ()) -> None:
    """Write the journal of a daemon that watches a campus under its incumbent, start to end.

    The policies run in its shadow; none: those of a configuration that names none.
    """
    given = {"campus": str(campus), "seed": seed, "speed": 0.0}
    asyncio.run(_watch(given, journal, {name: {} for name in policies}))


async def _watch(given: dict[str, Any], path: Path, policies: dict[str, Any]) -> None:
    adapters = {"site": {"type": "simulated", **given}}
    shadow = {"policies": policies} if policies else {}
    loaded = check_config({"adapters": adapters, **shadow}, "test")
    plugin = load_adapter("simulated")
    adapter = plugin("site", build(plugin.settings_type, given, "test"))
    core = Core(loaded, [SourceState("site", "simulated", False, 0.0)], adapter.clusters())
    with Journal(path) as journal:
        async with adapter:
            batches: Any = adapter.batches(None)
            async for batch in batches:
                stream = core.take("site", batch, batch.seen_until_s)
                while core.step(stream, 1_000):
                    pass
                if (entry := core.entry("site", batch)) is not None:
                    journal.append(entry)
                if not batch.events:
                    break
            await batches.aclose()


def write_journal(path: Path, events: Sequence[NamedEvent], seen_s: float | None = None) -> Path:
    """Write a journal of one adapter that reported these events, in this order."""
    inputs = [("site", event) for event in events]
    if seen_s is not None:
        inputs.append(("site", (seen_s, TICK, "site", None)))
    with Journal(path) as journal:
        journal.append(Entry(inputs=inputs))
    return path
