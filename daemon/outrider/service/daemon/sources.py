"""Sources of a configuration: creation, opening, batch validation and watermarks."""

import asyncio
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from math import isfinite
from typing import Any, Final

import structlog

from outrider.api.adapter import Adapter, Batch
from outrider.journal.records import encode_json
from outrider.model.errors import ConfigurationError, OutriderError, PluginError
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.config.declarations import adapter_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.core.guarded_feed import is_well_formed

_MAX_AHEAD_S: Final = 3_600.0
CLOSES_WITHIN_S: Final = 2.0
"""Seconds that a source may take to close; after that it is abandoned."""

log = structlog.get_logger()


def make_adapters(loaded: LoadedConfig, kept: Mapping[str, Adapter]) -> dict[str, Adapter]:
    """Return the adapters of a configuration: those of `kept`, and new ones.

    One that cannot be created is noted as broken, and the others continue.

    Raises:
        ConfigurationError: an adapter refuses its settings.
        PluginError: none could be created.
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
    where = loaded.place.inside("adapters", label)
    plugin = load_adapter(kind)
    settings = build(plugin.settings_type, options, where)
    try:
        return plugin(label, settings)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where.of()}: {error}") from error
    except OutriderError:
        raise
    except Exception as error:
        raise PluginError(f"{where}: {kind} fails: {type(error).__name__}: {error}") from error


@asynccontextmanager
async def opened(adapter: Adapter, cursor: Any) -> AsyncIterator[AsyncIterator[Batch]]:
    """Open an adapter and yield its batches, which end before the adapter is closed.

    An adapter whose closing hangs is abandoned: it must block neither the end of the daemon nor
    the next attempt to open it.
    """
    await adapter.__aenter__()
    batches: AsyncIterator[Batch] | None = None
    try:
        batches = adapter.batches(cursor)
        yield batches
    finally:
        limit = asyncio.timeout(CLOSES_WITHIN_S)
        try:
            async with limit:
                try:
                    if isinstance(batches, AsyncGenerator):
                        await batches.aclose()
                finally:
                    await adapter.__aexit__(*sys.exc_info())
        except (TimeoutError, asyncio.CancelledError):
            if not limit.expired():  # Python before 3.11.3 makes no TimeoutError of it in a task
                raise  # that is being cancelled
            log.error("adapter_abandoned", adapter=adapter.label, after_s=CLOSES_WITHIN_S)


def check_batch(batch: Batch) -> None:
    """Check that a batch can be taken in and recorded. Its events are checked elsewhere.

    Raises:
        PluginError: it cannot; names the problem and the expected value.
    """
    try:
        encode_json(batch.cursor)
        wrong = _wrong_in(batch.events, batch)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        wrong = str(error)
    if wrong:
        raise PluginError(f"an invalid batch: {wrong}")


def _wrong_in(events: Any, batch: Any) -> str:
    counts = [*batch.rejected.items(), *batch.ignored.items()]
    if not isinstance(events, Sequence):
        return f"events = {events!r}; expected a list"
    if not (isfinite(batch.age_s) and batch.age_s >= 0.0):
        return f"age_s = {batch.age_s!r}; expected seconds >= 0"
    if batch.seen_until_s is not None and not isfinite(batch.seen_until_s):
        return f"seen_until_s = {batch.seen_until_s!r}; expected Unix seconds, or None"
    for name in ("note", "problem"):
        if not isinstance(getattr(batch, name), str):
            return f"{name} = {getattr(batch, name)!r}; expected text"
    written = batch.written_s.items()
    if not all(isinstance(name, str) and isfinite(time_s) for name, time_s in written):
        return "written_s must hold Unix seconds by name"
    if not all(isinstance(name, str) and type(n) is int and n >= 0 for name, n in counts):
        return "rejected and ignored must hold counts by name"
    return ""


def seen_until(adapter: Adapter, batch: Batch, now_s: float) -> float | None:
    """Return the event time up to which the source is complete, less its lateness.

    A quiet source is complete up to its last reading. If an adapter's clock is far ahead of ours,
    at most `_MAX_AHEAD_S` are accepted: the time at the site never goes back.
    """
    if batch.seen_until_s is not None:
        until_s = batch.seen_until_s
        if not adapter.own_clock:
            until_s = min(until_s, now_s + _MAX_AHEAD_S)
        return until_s - adapter.lateness_s
    latest_s = max((event[0] for event in batch.events if is_well_formed(event)), default=None)
    if adapter.own_clock:
        return None if latest_s is None else latest_s - adapter.lateness_s
    # No source is complete beyond the present, even with a garbled date. One without events counts
    # as complete until now, or the others would wait for it; its later events may be late.
    return (now_s if latest_s is None else min(latest_s, now_s)) - adapter.lateness_s
