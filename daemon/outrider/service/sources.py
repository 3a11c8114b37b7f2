"""The sources of a configuration: how each is made, opened, and how far it has been seen."""

from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from outrider.api.adapter import Adapter, Batch
from outrider.model.errors import OutriderError, PluginError
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.config.declarations import adapter_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.malformed import is_well_formed


class SourceState:
    """What is known of one adapter, for status and metrics."""

    def __init__(self, label: str, kind: str, inferred: bool, lateness_s: float) -> None:
        self.label = label
        self.kind = kind
        self.inferred = inferred
        self.lateness_s = lateness_s
        self.up = False
        self.age_s = 0.0
        self.note = ""
        self.rejected: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.recorded: list[dict[str, int]] = [{}, {}]


def make_adapters(loaded: LoadedConfig, kept: Mapping[str, Adapter]) -> dict[str, Adapter]:
    """The adapters of a configuration: those of `kept`, the others made anew.

    One that fails while it is made is noted as broken, and the rest go on.

    Raises:
        ConfigurationError: one refuses its settings.
        PluginError: not one could be made.
    """
    adapters: dict[str, Adapter] = {}
    for label, given in loaded.config.adapters.items():
        if f"adapters.{label}" in loaded.broken:
            continue
        try:
            adapters[label] = kept.get(label) or _make_adapter(loaded, label, given)
        except PluginError as error:
            loaded.broken[f"adapters.{label}"] = str(error)
    if not adapters:
        raise PluginError("; ".join(loaded.broken.values()))
    return adapters


def _make_adapter(loaded: LoadedConfig, label: str, given: Mapping[str, Any]) -> Adapter:
    kind, options = adapter_of(label, given)
    where = f"{loaded.source} [adapters.{label}]"
    plugin = load_adapter(kind)
    settings = build(plugin.settings_type, options, where)
    try:
        return plugin(label, settings)
    except OutriderError:
        raise
    except Exception as error:
        raise PluginError(f"{where}: {kind} fails: {type(error).__name__}: {error}") from error


@asynccontextmanager
async def opened(adapter: Adapter, cursor: Any) -> AsyncIterator[AsyncIterator[Batch]]:
    """The batches of an adapter, which end before the adapter is closed."""
    async with adapter:
        batches = adapter.batches(cursor)
        try:
            yield batches
        finally:
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()


def seen_until(adapter: Adapter, batch: Batch, now_s: float) -> float | None:
    """Up to which event time the source has been seen, less what may still come late."""
    if batch.seen_until_s is not None:
        return batch.seen_until_s - adapter.lateness_s
    latest_s = max((event[0] for event in batch.events if is_well_formed(event)), default=None)
    if adapter.own_clock:
        return None if latest_s is None else latest_s - adapter.lateness_s
    # Nothing is seen beyond the present, whatever a garbled date says. Without events it cannot
    # say, and the others must not wait for it: what it tells later is counted as late.
    return (now_s if latest_s is None else min(latest_s, now_s)) - adapter.lateness_s
