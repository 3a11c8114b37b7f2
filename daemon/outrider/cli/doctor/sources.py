"""Whether each adapter's source can be read: it is opened as the daemon would, and left at once."""

import asyncio
import os
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import aclosing
from functools import partial
from glob import glob
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from outrider.api.adapter import Adapter, Batch
from outrider.cli.printing import echo
from outrider.model.errors import OutriderError
from outrider.model.events import JOINED, LEFT, STARTED, NamedEvent
from outrider.model.quantities import count, duration
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.unit.suggestion import Seen

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig


# -- findings --------------------------------------------------------------------------------------
# What an examination found: of the daemon's surroundings, of a source.

State: TypeAlias = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """One finding.

    Attributes:
        name: what was examined.
        state: ``ok``; ``warn``, it works but somebody should know; ``fail``.
        found: what is the case.
        remedy: what to do about it; empty where all is well.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


# -- sources ---------------------------------------------------------------------------------------

PATIENCE_S: Final = 5.0
MOST_BATCHES: Final = 20
_NO_ANSWER: Final = f"gave no answer in {PATIENCE_S:g} s: is it on a dead mount?"


def check_sources(loaded: "LoadedConfig") -> Iterator[Check]:
    """One or more checks for each adapter.

    An adapter may say more than its batches do: a method ``diagnose()`` that gives
    (what, state, found, remedy) for each thing it needs.
    """
    from outrider.service.config.declarations import adapter_of

    for label, table in loaded.config.adapters.items():
        kind, options = adapter_of(label, table)
        name = f"adapter {label}"
        try:
            adapter = load_adapter(kind)
            settings = build(adapter.settings_type, options, f"{loaded.source} [adapters.{label}]")
            made = adapter(label, settings)
            diagnose = getattr(made, "diagnose", None)
            if diagnose is not None:
                findings: Iterable[Any] = diagnose()
                yield from (Check(f"{name}: {what}", *rest) for what, *rest in findings)
            if _NO_ANSWER in _within_patience(partial(adapter.check_source, settings)):
                yield Check(name, "fail", _NO_ANSWER, "mend the mount, or name another log")
                continue
            absent = list(_check_files(name, getattr(settings, "paths", ())))
            if absent:
                yield from absent
                continue
            yield asyncio.run(_first_look(name, made, loaded.config.stale_after_s))
        except OutriderError as error:
            yield Check(name, "fail", str(error), "mend the source, or its settings")
        except Exception as error:  # noqa: BLE001 - a stranger's code; it must not hide the rest
            yield Check(
                name,
                "fail",
                f"{type(error).__name__}: {error}",
                f"report it to whoever made {kind}",
            )


def wrong_with_sources(loaded: "LoadedConfig") -> list[str]:
    """What a look at the sources finds wrong with them, a sentence each; it connects to nobody."""
    from outrider.service.config.declarations import adapter_of

    wrong = []
    for label, table in loaded.config.adapters.items():
        kind, options = adapter_of(label, table)
        adapter = load_adapter(kind)
        settings = build(adapter.settings_type, options, f"{loaded.source} [adapters.{label}]")
        found = _within_patience(partial(adapter.check_source, settings))
        wrong += [f"adapter {label}: {problem}" for problem in found]
    return wrong


def _within_patience(look: Callable[[], list[str]]) -> list[str]:
    """What a look finds; a look that hangs is left to itself, and fails alone."""
    found = [_NO_ANSWER]

    def take() -> None:
        try:
            found[:] = look()
        except Exception as error:  # noqa: BLE001 - a stranger's code
            found[:] = [str(error) or type(error).__name__]

    thread = threading.Thread(target=take, name="check-source", daemon=True)
    thread.start()
    thread.join(PATIENCE_S)
    return list(found)


def _check_files(name: str, patterns: Iterable[str]) -> Iterator[Check]:
    """Of an adapter that names files: whether each is there and may be read."""
    for pattern in patterns:
        files = sorted(glob(pattern))  # noqa: PTH207 - an absolute pattern, as adapters take it
        if not files:
            yield Check(
                name, "fail", f"{pattern}: no such file",
                "name the log the batch system writes (HTCondor: condor_config_val EVENT_LOG)",
            )  # fmt: skip
        for file in files:
            if not os.access(file, os.R_OK):
                yield Check(
                    name, "fail", f"{file}: may not be read",
                    "run the doctor as the daemon's user; give that user a group that may read it",
                )  # fmt: skip


async def _first_look(name: str, adapter: Adapter, stale_after_s: float) -> Check:
    """Open the source, take what it gives within a few seconds, and judge that."""
    seen: list[Batch] = []
    try:
        async with asyncio.timeout(PATIENCE_S), adapter, aclosing(_stream(adapter)) as batches:
            async for batch in batches:
                seen.append(batch)
                if batch.seen_until_s is not None or batch.problem or len(seen) >= MOST_BATCHES:
                    break
    except TimeoutError:
        if not seen:
            return Check(
                name, "fail", f"gave no sign of life in {PATIENCE_S:g} s", "look into its source"
            )
    return _judge(name, adapter, seen, stale_after_s)


def _stream(adapter: Adapter) -> Any:
    return adapter.batches(None)


def _judge(name: str, adapter: Adapter, seen: list[Batch], stale_after_s: float) -> Check:
    events = sum(len(batch.events) for batch in seen)
    rejected = sum(sum(batch.rejected.values()) for batch in seen)
    # what was said while an answer was awaited is over once there is one
    told = [one for one in seen if one is seen[-1] or one.events or one.rejected]
    notes = "; ".join(dict.fromkeys(batch.note for batch in told if batch.note))
    age_s = seen[-1].age_s
    found = f"{count(events)} events at a first look, input {duration(age_s)} old"
    if events and not adapter.own_clock:
        newest_s = max(event[0] for batch in seen for event in batch.events)
        found += f", newest event {duration(time.time() - newest_s)} ago"
    if problem := seen[-1].problem:
        return Check(name, "fail", problem, "name a log, and let the daemon's user read it")
    if notes:
        return Check(name, "warn", f"{found}; {notes}", "see what the note says")
    if rejected:
        return Check(
            name, "warn", f"{found}; {count(rejected)} records could not be read",
            "`outrider ingest` on the file tells which sort",
        )  # fmt: skip
    if age_s > stale_after_s:
        return Check(
            name, "warn", f"{found}: stale after {duration(stale_after_s)}",
            "a quiet batch system, or one that writes elsewhere now?",
        )  # fmt: skip
    return Check(name, "ok", found)


# -- machines seen ---------------------------------------------------------------------------------
# Which machines each adapter of a configuration sees, at a look as long as one may wait.

LOOK_PATIENCE_S: Final = 20.0
"""For the history of a long log, too; what was seen until then counts."""
MOST_BATCHES_OF_A_LOOK: Final = 100_000


def every_seen(loaded: "LoadedConfig") -> list[Seen]:
    """What each adapter sees; what goes wrong is told on standard error, and the others go on."""
    from outrider.service.config.declarations import adapter_of

    found = []
    for label, table in loaded.config.adapters.items():
        kind, options = adapter_of(label, table)
        machines: dict[str, str] = {}
        attributes: Any = {}
        try:
            made = load_adapter(kind)
            settings = build(made.settings_type, options, f"{loaded.source} [adapters.{label}]")
            asyncio.run(_look(made(label, settings), loaded, machines))
            if made.cluster_setting is not None:
                attributes = made(label, settings).machine_attributes()
        except OutriderError as error:
            echo(f"adapter {label}: {error}", err=True)
        except Exception as error:  # noqa: BLE001 - a stranger's code; it must not hide the rest
            echo(f"adapter {label}: {type(error).__name__}: {error}", err=True)
        found.append(Seen(label, machines, attributes, made.cluster_setting, made.pattern_setting))
    return found


async def _look(adapter: Adapter, loaded: "LoadedConfig", machines: dict[str, str]) -> None:
    """Take what the source gives until it has been seen whole; cluster of each machine by name."""
    n = 0
    try:
        async with asyncio.timeout(LOOK_PATIENCE_S), adapter, aclosing(_stream(adapter)) as batches:
            async for batch in batches:
                n += 1
                for event in batch.events:
                    _take(event, loaded, machines)
                if n >= MOST_BATCHES_OF_A_LOOK or (
                    batch.seen_until_s is not None and not batch.history
                ):
                    break
    except TimeoutError:
        where = f"{len(machines):,} machines until then" if machines else "no machine yet"
        echo(f"adapter {adapter.label}: seen for {LOOK_PATIENCE_S:g} s: {where}", err=True)


def _take(event: NamedEvent, loaded: "LoadedConfig", machines: dict[str, str]) -> None:
    _, kind, subject, extra = event
    if kind == JOINED:
        machines[subject] = extra.cluster
    elif kind == LEFT:
        machines.pop(subject, None)
    elif kind == STARTED:
        machine = extra[0]
        machines.setdefault(machine, loaded.describe_machine(machine).cluster)
