"""A daemon's core that has watched a simulated campus, to be compared with a replay of it."""

from typing import Any

from outrider.formats.campus.campus import Campus
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.config.loaded import check_config
from outrider.service.core.core import Core
from outrider.service.core.source_state import SourceState


def small_campus(machines: int, seed: int) -> dict[str, Any]:
    """Return settings of a week with so many machines, at full speed."""
    return {
        "machines": machines, "clusters": 3, "weeks": 1.0, "seed": seed, "speed": 0.0,
        "batch_s": 0.001,
    }  # fmt: skip


def campus_of(settings: dict[str, Any]) -> Campus:
    """The same campus, for a replay."""
    plugin: Any = load_adapter("simulated")
    campus: Campus = plugin("campus", build(plugin.settings_type, settings, "test"))._campus
    return campus


async def watched(settings: dict[str, Any], mode: str = "shadow", **more: Any) -> Core:
    """The core of a daemon that has watched the campus from its first to its last event."""
    given = {"mode": mode, "adapters": {"campus": {"type": "simulated", **settings}}, **more}
    plugin = load_adapter("simulated")
    adapter = plugin("campus", build(plugin.settings_type, settings, "test"))
    source = SourceState("campus", "simulated", False, 0.0)
    core = Core(check_config(given, "test"), [source], adapter.clusters())
    async with adapter:
        batches: Any = adapter.batches(None)
        async for batch in batches:
            stream = core.take("campus", batch, batch.seen_until_s)
            while core.step(stream, 1_000):
                pass
            core.entry("campus", batch)
            if not batch.events:
                break
        await batches.aclose()
    return core
