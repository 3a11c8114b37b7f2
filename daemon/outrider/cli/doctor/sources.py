"""Checks of each adapter's source, opened as the daemon would, its levers, and the MQTT broker."""

import asyncio
import os
import pwd
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import wait
from contextlib import aclosing
from functools import partial
from glob import glob
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, TypeAlias

from outrider.api.adapter import Adapter, Batch
from outrider.cli.printing import echo
from outrider.model.errors import OutriderError, PeerError
from outrider.model.events import JOINED, LEFT, STARTED, NamedEvent
from outrider.model.quantities import count, duration
from outrider.model.settings import build
from outrider.plugins.finding import load_adapter
from outrider.service.host.threads import in_thread
from outrider.service.unit.suggestion import Seen

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig


# -- findings --------------------------------------------------------------------------------------
# Result of one check, of the daemon's surroundings or of a source.

State: TypeAlias = Literal["ok", "warn", "fail"]


class Check(NamedTuple):
    """Result of one check.

    Attributes:
        name: subject of the check.
        state: ``ok``; ``warn``: works, but an admin should know; ``fail``.
        found: the finding.
        remedy: how to fix it; empty if there is nothing to fix.
    """

    name: str
    state: State
    found: str
    remedy: str = ""


# -- sources ---------------------------------------------------------------------------------------

TIMEOUT_S: Final = 5.0
MAX_BATCHES: Final = 20
_NO_ANSWER: Final = f"no answer in {TIMEOUT_S:g} s; perhaps a dead mount"


def check_sources(
    loaded: "LoadedConfig", daemon: Mapping[str, Any] | None = None
) -> Iterator[Check]:
    """Yield one or more checks for each adapter.

    An adapter may add its own checks: a method ``diagnose()`` that returns
    (what, state, found, remedy) for each thing it needs.

    Args:
        loaded: the configuration.
        daemon: status of the daemon that runs; None: none does.
    """
    known = {one["label"]: one for one in (daemon or {}).get("adapters", ())}
    for label, table in loaded.config.adapters.items():
        ours = _look_at(loaded, label, table)
        if daemon is None:
            yield from ours
        else:
            yield from _as_daemon(f"adapter {label}", known.get(label), list(ours))


def _look_at(loaded: "LoadedConfig", label: str, table: Mapping[str, Any]) -> Iterator[Check]:
    """Yield what this process finds about an adapter."""
    from outrider.service.config.declarations import adapter_of

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
        if _NO_ANSWER in _within_timeout(partial(adapter.check_source, settings)):
            yield Check(name, "fail", _NO_ANSWER, "fix the mount, or set another log")
            return
        absent = list(_check_files(name, getattr(settings, "paths", ())))
        if absent:
            yield from absent
            return
        yield asyncio.run(_first_look(name, made, loaded.config.stale_after_s))
    except OutriderError as error:
        yield Check(name, "fail", str(error), "fix the source or its settings")
    except Exception as error:  # noqa: BLE001 - a plugin's code; it must not hide the rest
        yield Check(
            name,
            "fail",
            f"{type(error).__name__}: {error}",
            f"report it to the author of {kind}",
        )


def _as_daemon(name: str, state: Mapping[str, Any] | None, ours: list[Check]) -> Iterator[Check]:
    """Yield the running daemon's word about an adapter, then what this process found.

    What only this process cannot read is a warning: the daemon's user may have other permissions.

    Args:
        name: name of the checks.
        state: the adapter in the daemon's status; None: the daemon does not have it.
        ours: what this process found.
    """
    word = f"{name}: the running daemon"
    failed = [check for check in ours if check.state == "fail"]
    if state is None:
        yield Check(word, "warn", "does not have this adapter", "reload or restart the daemon")
    elif state["up"]:
        age = duration(state["input_age_s"])
        events = count(sum(state["events"].values()))
        found = f"up, {events} events so far, input {age} old"
        yield Check(word, "ok", f"{found}; {state['note']}" if state.get("note") else found)
        if len(failed) == len(ours):
            why = f"the daemon reads it, and {this_user()} cannot: "
            ours = [one._replace(state="warn", found=f"{why}{one.found}") for one in ours]
    else:
        remedy = f"{this_user()} can read it: compare the daemon's user, environment and sandbox"
        if failed:
            remedy = failed[0].remedy
        yield Check(word, "fail", f"down: {state.get('problem') or 'no answer yet'}", remedy)
    yield from ours


def this_user() -> str:
    """Return the user of this process, in words."""
    try:
        return f"the user {pwd.getpwuid(os.geteuid()).pw_name}"
    except KeyError:
        return f"the user {os.geteuid()}"


def wrong_with_sources(loaded: "LoadedConfig") -> list[str]:
    """Return problems of the adapters' sources, a sentence each, without network access."""
    from outrider.service.config.declarations import adapter_of

    wrong = []
    for label, table in loaded.config.adapters.items():
        kind, options = adapter_of(label, table)
        adapter = load_adapter(kind)
        settings = build(adapter.settings_type, options, f"{loaded.source} [adapters.{label}]")
        found = _within_timeout(partial(adapter.check_source, settings))
        wrong += [f"adapter {label}: {problem}" for problem in found]
    return wrong


def _within_timeout(look: Callable[[], list[str]]) -> list[str]:
    """Return the findings of a check that may hang; after the timeout it is abandoned."""
    asked = in_thread(look, "check-source")
    if not wait((asked,), TIMEOUT_S).done:
        return [_NO_ANSWER]
    try:
        return asked.result()
    except Exception as error:  # noqa: BLE001 - a plugin's code
        return [str(error) or type(error).__name__]


def _check_files(name: str, patterns: Iterable[str]) -> Iterator[Check]:
    """Check that each file that an adapter reads exists and is readable."""
    for pattern in patterns:
        files = sorted(glob(pattern))  # noqa: PTH207 - an absolute pattern, as adapters take it
        if not files:
            yield Check(
                name, "fail", f"{pattern}: no such file",
                "set the log that the batch system writes (HTCondor: condor_config_val EVENT_LOG)",
            )  # fmt: skip
        for file in files:
            if not os.access(file, os.R_OK):
                yield Check(
                    name, "fail", f"{file}: permission denied",
                    "run the doctor as the daemon's user; that user needs a group that may read it",
                )  # fmt: skip


async def _first_look(name: str, adapter: Adapter, stale_after_s: float) -> Check:
    """Open the source, read for a few seconds, and assess the result."""
    seen: list[Batch] = []
    try:
        async with asyncio.timeout(TIMEOUT_S), adapter, aclosing(_stream(adapter)) as batches:
            async for batch in batches:
                seen.append(batch)
                if batch.seen_until_s is not None or batch.problem or len(seen) >= MAX_BATCHES:
                    break
    except TimeoutError:
        if not seen:
            return Check(name, "fail", f"no data in {TIMEOUT_S:g} s", "check that its source works")
    return _judge(name, adapter, seen, stale_after_s)


def _stream(adapter: Adapter) -> Any:
    return adapter.batches(None)


def _judge(name: str, adapter: Adapter, seen: list[Batch], stale_after_s: float) -> Check:
    events = sum(len(batch.events) for batch in seen)
    rejected = sum(sum(batch.rejected.values()) for batch in seen)
    # notes from before the first answer no longer apply once there is one
    relevant = [one for one in seen if one is seen[-1] or one.events or one.rejected]
    notes = "; ".join(dict.fromkeys(batch.note for batch in relevant if batch.note))
    age_s = seen[-1].age_s
    found = f"{count(events)} events at first, input {duration(age_s)} old"
    if events and not adapter.own_clock:
        newest_s = max(event[0] for batch in seen for event in batch.events)
        found += f", newest event {duration(time.time() - newest_s)} ago"
    if problem := seen[-1].problem:
        return Check(name, "fail", problem, "set a log that the daemon's user can read")
    if notes:
        return Check(name, "warn", f"{found}; {notes}", "see the note")
    if rejected:
        return Check(
            name, "warn", f"{found}; {count(rejected)} records could not be read",
            "run `outrider ingest` on the file to see which",
        )  # fmt: skip
    if age_s > stale_after_s:
        return Check(
            name, "warn", f"{found}: stale after {duration(stale_after_s)}",
            "check that the batch system still writes there; it may just be idle",
        )  # fmt: skip
    return Check(name, "ok", found)


# -- lever checks ----------------------------------------------------------------------------------
# Tests of each lever on a test job.


def check_levers(loaded: "LoadedConfig") -> Iterator[Check]:
    """Yield the findings of all levers of all adapters, one by one."""
    from outrider.service.config.reading import state_folder
    from outrider.service.daemon.levers import make_levers
    from outrider.service.daemon.sources import make_adapters

    levers = make_levers(make_adapters(loaded, {}), state_folder(loaded))
    if not levers:
        yield Check("levers", "warn", "no configured adapter has a lever", "use mode shadow")
    for label, of_adapter in levers.items():
        for lever in of_adapter:
            name = f"lever {label}: {lever.name}"
            try:
                found = [Check(f"{name}: {what}", *rest) for what, *rest in lever.prove()]  # type: ignore[arg-type]
            except OutriderError as error:
                found = [Check(name, "fail", str(error), "fix this error, then try again")]
            except Exception as error:  # noqa: BLE001 - a plugin's code; it must not hide the rest
                found = [Check(name, "fail", f"{type(error).__name__}: {error}", "report it")]
            finally:
                lever.close()
            untried = "cannot be tested without a user's job"
            yield from found or [Check(name, "warn", untried, "test it in mode canary")]


# -- broker check ----------------------------------------------------------------------------------
# Access to the MQTT broker: login, and permission to publish and to read our topics.

PROBE_TOPIC: Final = "doctor"
"""Topic below our base for one empty test message, which is not retained."""


def check_broker(loaded: "LoadedConfig") -> Iterator[Check]:
    """Check the MQTT broker if the configuration has a table [mqtt]."""
    from outrider.api.broker import probe_topic

    settings = loaded.config.mqtt
    if settings is None:
        return
    topic = f"{settings.base}/{PROBE_TOPIC}"
    try:
        probe = asyncio.run(probe_topic(settings, f"{settings.site}-doctor", topic))
    except PeerError as error:
        yield Check(
            "mqtt", "fail", str(error),
            "start the broker or fix [mqtt]; decisions made until then are published later",
        )  # fmt: skip
        return
    who = settings.username or "clients without a name"
    if probe.comes_back:
        found = f"{settings.address}: {who} may write and read {settings.base}/#"
        yield Check("mqtt", "ok", found)
        return
    denied = {
        True: f"{who} may publish to {topic}, but not read it",
        False: f"{who} may not publish to {topic}",
        None: f"messages of {who} to {topic} do not come back: writing or reading is denied",
    }[probe.may_write]
    yield Check(
        "mqtt", "fail", f"{settings.address}: {denied}",
        f"give {who} read and write access; in Mosquitto's acl_file: "
        f"topic readwrite {settings.base}/#",
    )  # fmt: skip


# -- machines seen ---------------------------------------------------------------------------------
# Machines that each adapter of a configuration sees within a time limit.

LOOK_TIMEOUT_S: Final = 20.0
"""Time limit that suffices for the history of a long log; machines seen until then count."""
MAX_BATCHES_OF_A_LOOK: Final = 100_000


def every_seen(loaded: "LoadedConfig") -> list[Seen]:
    """Return what each adapter sees; errors of one are printed and do not stop the others."""
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
        except Exception as error:  # noqa: BLE001 - a plugin's code; it must not hide the rest
            echo(f"adapter {label}: {type(error).__name__}: {error}", err=True)
        found.append(Seen(label, machines, attributes, made.cluster_setting, made.pattern_setting))
    return found


async def _look(adapter: Adapter, loaded: "LoadedConfig", machines: dict[str, str]) -> None:
    """Read the source to its end; store the cluster of each machine by name."""
    n = 0
    try:
        async with asyncio.timeout(LOOK_TIMEOUT_S), adapter, aclosing(_stream(adapter)) as batches:
            async for batch in batches:
                n += 1
                for event in batch.events:
                    _take(event, loaded, machines)
                if n >= MAX_BATCHES_OF_A_LOOK or (
                    batch.seen_until_s is not None and not batch.history
                ):
                    break
    except TimeoutError:
        where = f"{len(machines):,} machines until then" if machines else "no machine yet"
        echo(f"adapter {adapter.label}: stopped after {LOOK_TIMEOUT_S:g} s: {where}", err=True)


def _take(event: NamedEvent, loaded: "LoadedConfig", machines: dict[str, str]) -> None:
    _, kind, subject, extra = event
    if kind == JOINED:
        machines[subject] = extra.cluster
    elif kind == LEFT:
        machines.pop(subject, None)
    elif kind == STARTED:
        machine = extra[0]
        machines.setdefault(machine, loaded.describe_machine(machine).cluster)


# -- memory ----------------------------------------------------------------------------------------
# The unit's memory limit, and the jobs of all sources.


def check_memory(daemon: dict[str, Any] | None, root: Path = Path("/")) -> Iterator[Check]:
    """Compare the memory limit of the installed unit with the jobs that the daemon follows.

    Args:
        daemon: status of the running daemon; None: none runs, so its limit on jobs counts.
        root: below which the unit is installed.
    """
    from outrider.engine.ingest.bounded_names import NameLimits
    from outrider.service.unit.installed import MEMORY_MAX, installed_unit, jobs_within

    unit = installed_unit(root)
    if unit is None or unit.memory_max is None:
        return
    most = NameLimits().job
    counts = {} if daemon is None else daemon.get("jobs") or {}
    here = sum(int(counts.get(state) or 0) for state in ("queued", "running", "suspended", "held"))
    room, mib = jobs_within(unit.memory_max), unit.memory_max >> 20
    found = f"{unit.path}: MemoryMax of {mib:,} MiB leaves room for some {room:,} waiting jobs"
    if here:
        found += f"; {here:,} are here"
    enough = unit.memory_max >= MEMORY_MAX or (daemon is not None and 2 * here <= room)
    if enough:
        yield Check("memory", "ok", found)
        return
    yield Check(
        "memory", "warn", f"{found}, and up to {most:,} are followed",
        f"set MemoryMax={MEMORY_MAX >> 20}M in a drop-in of outrider.service: "
        "systemctl edit outrider",
    )  # fmt: skip
