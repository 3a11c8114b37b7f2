"""Which machines each adapter of a configuration sees, at a look as long as one may wait."""

import asyncio
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final

import click

from outrider.api.adapter import Adapter
from outrider.model.errors import OutriderError
from outrider.model.events import JOINED, LEFT, STARTED, NamedEvent
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.suggestion.fragment import Seen

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig

PATIENCE_S: Final = 20.0
"""For the history of a long log, too; what was seen until then counts."""
MOST_BATCHES: Final = 100_000


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
            click.echo(f"adapter {label}: {error}", err=True)
        except Exception as error:  # noqa: BLE001 - a stranger's code; it must not hide the rest
            click.echo(f"adapter {label}: {type(error).__name__}: {error}", err=True)
        found.append(Seen(label, machines, attributes, made.cluster_setting, made.pattern_setting))
    return found


async def _look(adapter: Adapter, loaded: "LoadedConfig", machines: dict[str, str]) -> None:
    """Take what the source gives until it has been seen whole; cluster of each machine by name."""
    n = 0
    try:
        async with asyncio.timeout(PATIENCE_S), adapter, aclosing(_stream(adapter)) as batches:
            async for batch in batches:
                n += 1
                for event in batch.events:
                    _take(event, loaded, machines)
                if n >= MOST_BATCHES or (batch.seen_until_s is not None and not batch.history):
                    break
    except TimeoutError:
        where = f"{len(machines):,} machines until then" if machines else "no machine yet"
        click.echo(f"adapter {adapter.label}: seen for {PATIENCE_S:g} s: {where}", err=True)


def _take(event: NamedEvent, loaded: "LoadedConfig", machines: dict[str, str]) -> None:
    _, kind, subject, extra = event
    if kind == JOINED:
        machines[subject] = extra.cluster
    elif kind == LEFT:
        machines.pop(subject, None)
    elif kind == STARTED:
        machine = extra[0]
        machines.setdefault(machine, loaded.describe_machine(machine).cluster)


def _stream(adapter: Adapter) -> Any:
    return adapter.batches(None)
