"""The sources of a configuration: how each is made, opened, and how far it has been seen."""

import time
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from math import isfinite
from typing import Any, Final

from outrider.api.adapter import Adapter, Batch
from outrider.engine.ingest.bounded_names import OTHER
from outrider.ledger.extras import encode_json
from outrider.model.errors import ConfigurationError, OutriderError, PluginError
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.config.declarations import adapter_of
from outrider.service.config.loaded import LoadedConfig
from outrider.service.malformed import is_well_formed

_MOST_AHEAD_S: Final = 3_600.0
HANGS_AFTER_S: Final = 15.0
"""An adapter yields a batch every few seconds, an empty one if nothing happened. One that yields
none for so long hangs, and the age of its information grows."""


MOST_COUNTED: Final = 100
"""Reasons for which records are rejected, and kinds of those ignored, that are counted by name:
some are words of the source's own."""


def add_bounded(counts: Counter[str], more: Mapping[str, int]) -> None:
    """Add counts by name; those of names that come when there are many already go to `OTHER`."""
    for name, n in more.items():
        counts[name if name in counts or len(counts) < MOST_COUNTED else OTHER] += n


class SourceState:
    """What is known of one adapter, for status and metrics.

    Args:
        label, kind, inferred, lateness_s: as the adapter says.
        clock: seconds that only ever go on.
    """

    def __init__(
        self, label: str, kind: str, inferred: bool, lateness_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:  # fmt: skip
        self.label = label
        self.kind = kind
        self.inferred = inferred
        self.lateness_s = lateness_s
        self.note = ""
        self.problem = ""
        self._clock = clock
        self._said_age_s = 0.0
        self._batch_at_s = clock()
        self._stale_after_s = 0.0
        self._is_open = False
        self.rejected: Counter[str] = Counter()
        self.ignored: Counter[str] = Counter()
        self.recorded: list[dict[str, int]] = [{}, {}]

    def note_batch(self, age_s: float, note: str, stale_after_s: float, problem: str = "") -> None:
        """A batch came, with information of this age; the source is `up` until that is stale."""
        self._said_age_s, self._batch_at_s, self.note = age_s, self._clock(), note
        self._stale_after_s, self._is_open = stale_after_s, True
        self.problem = problem

    def lose(self, problem: str) -> None:
        """The source cannot be read at present; the age of its information grows."""
        self._is_open, self.note = False, problem

    @property
    def age_s(self) -> float:
        """Seconds since the newest information was true; grows while no batch comes."""
        silent_s = self._clock() - self._batch_at_s
        return self._said_age_s + (
            silent_s if silent_s > HANGS_AFTER_S or not self._is_open else 0.0
        )

    @property
    def is_open(self) -> bool:
        """Whether the source can be read at present."""
        return self._is_open

    @property
    def up(self) -> bool:
        """Whether the source can be read and its information is not stale."""
        return self._is_open and not self.problem and self.age_s <= self._stale_after_s


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
    """The batches of an adapter, which end before the adapter is closed."""
    async with adapter:
        batches = adapter.batches(cursor)
        try:
            yield batches
        finally:
            if isinstance(batches, AsyncGenerator):
                await batches.aclose()


def check_batch(batch: Batch) -> None:
    """Check that a batch can be taken in and recorded. Its events are checked one by one elsewhere.

    Raises:
        PluginError: it cannot; says what is wrong and what would be right.
    """
    try:
        encode_json(batch.cursor)
        wrong = _wrong_in(batch.events, batch)
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        wrong = str(error)
    if wrong:
        raise PluginError(f"a batch that is none: {wrong}")


def _wrong_in(events: Any, batch: Any) -> str:
    counts = [*batch.rejected.items(), *batch.ignored.items()]
    if not isinstance(events, Sequence):
        return f"events = {events!r}; right would be a list"
    if not (isfinite(batch.age_s) and batch.age_s >= 0.0):
        return f"age_s = {batch.age_s!r}; right would be seconds >= 0"
    if batch.seen_until_s is not None and not isfinite(batch.seen_until_s):
        return f"seen_until_s = {batch.seen_until_s!r}; right would be Unix seconds, or None"
    if not isinstance(batch.note, str):
        return f"note = {batch.note!r}; right would be text"
    if not all(isinstance(name, str) and type(n) is int and n >= 0 for name, n in counts):
        return "rejected and ignored must hold counts by name"
    return ""


def seen_until(adapter: Adapter, batch: Batch, now_s: float) -> float | None:
    """Up to which event time the source has been seen, less what may still come late.

    A quiet source is seen until it was read. Of an adapter whose clock is far ahead of ours only
    `_MOST_AHEAD_S` are believed: the time at the site never goes back.
    """
    if batch.seen_until_s is not None:
        until_s = batch.seen_until_s
        if not adapter.own_clock:
            until_s = min(until_s, now_s + _MOST_AHEAD_S)
        return until_s - adapter.lateness_s
    latest_s = max((event[0] for event in batch.events if is_well_formed(event)), default=None)
    if adapter.own_clock:
        return None if latest_s is None else latest_s - adapter.lateness_s
    # No source has been seen beyond the present, whatever a garbled date says. One without events
    # counts as seen until now, or the others would wait for it; its later events may be late.
    return (now_s if latest_s is None else min(latest_s, now_s)) - adapter.lateness_s
