"""What the daemon needs, examined piece by piece: each check says what it found and what to do."""

import asyncio
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from outrider.cli.configuration import journal_path, load
from outrider.cli.daemon import DaemonAddress
from outrider.cli.doctor.sources import Check
from outrider.cli.printing import shown
from outrider.model.errors import ConfigurationError, LedgerError, OutriderError, PeerError
from outrider.model.quantities import clock, duration

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig

LEAST_FREE_BYTES: Final = 50 * 1024**2
LITTLE_FREE_BYTES: Final = 1024**3
QUICK_JOURNAL_BYTES: Final = 64 * 1024**2
"""A larger journal is opened and counted, not read through."""
_CLOCK_SLACK_S: Final = 60.0
_RELEASED_S: Final = 1_767_225_600.0  # 2026-01-01: a clock before Outrider's first year is wrong


def examine(config: Path) -> Iterator[Check]:
    """Examine everything, the configuration first: without it nothing else can be found."""
    yield from check_plugins()
    try:
        loaded = load(config)
    except OutriderError as error:
        yield Check("configuration", "fail", str(error), "mend it; `outrider check-config` helps")
        return
    yield Check("configuration", "ok", f"{shown(config)}: mode {loaded.config.mode}")
    journal = journal_path(loaded)
    there = daemon_there(loaded)
    yield check_state_folder(journal.parent)
    yield check_free_space(journal.parent)
    yield check_journal(journal)
    yield check_clock(journal, loaded)
    yield check_port(loaded, there)
    from outrider.cli.doctor.secret_files import check_secret_files

    yield from check_secret_files(loaded)
    from outrider.cli.doctor.sources import check_sources

    yield from check_sources(loaded)

    yield from check_broker(loaded)
    yield check_systemd()

    yield from check_unit(loaded)


def check_plugins() -> Iterator[Check]:
    """Return whether every plugin loads; one that is not used does no harm.

    What is unavailable for want of a package is told and not complained of: where the
    configuration names it, it is the configuration or its source that fails.
    """
    from outrider.cli.installed_plugins import installed

    plugins = [plugin for group in installed().values() for plugin in group]
    broken = [plugin for plugin in plugins if plugin["state"] == "broken"]
    if not broken:
        missing = [plugin["why"] for plugin in plugins if plugin["state"] == "unavailable"]
        loaded = f"{len(plugins) - len(missing)} load" if missing else f"all {len(plugins)} load"
        yield Check("plugins", "ok", "; ".join([loaded, *missing]))
    for plugin in broken:
        yield Check(
            "plugins", "warn", plugin["why"], f"reinstall or remove {plugin['distribution']}"
        )


def check_state_folder(folder: Path) -> Check:
    """Return whether the state directory can be written, by whoever asks."""
    name = "state directory"
    if not folder.is_dir():
        parent = next((p for p in folder.parents if p.is_dir()), Path("/"))
        if os.access(parent, os.W_OK | os.X_OK):
            return Check(name, "ok", f"{folder}: not there yet; the daemon will make it")
        return Check(
            name, "fail", f"{folder}: not there, and cannot be made in {parent}",
            f"make it for the daemon's user: install -d -m 700 {folder}",
        )  # fmt: skip
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
    except OSError as error:
        return Check(
            name, "fail", f"{folder}: cannot be written: {error.strerror}",
            "run the doctor as the daemon's user, or give that user the folder",
        )  # fmt: skip
    return Check(name, "ok", f"{folder}: can be written")


def check_free_space(folder: Path) -> Check:
    """Return whether the journal has room to grow."""
    place = next(p for p in (folder, *folder.parents) if p.is_dir())
    free = shutil.disk_usage(place).free
    found = f"{free / 1024**3:.1f} GB free at {place}"
    remedy = "free some space, or shorten retention_days"
    if free < LEAST_FREE_BYTES:
        return Check("free space", "fail", found, remedy)
    if free < LITTLE_FREE_BYTES:
        return Check("free space", "warn", found, remedy)
    return Check("free space", "ok", found)


def check_journal(path: Path) -> Check:
    """Return whether the journal opens and is whole."""
    from outrider.journal import Journal, verify

    if not path.exists():
        return Check("journal", "ok", f"{path}: none yet; the daemon begins one")
    remedy = "move it away and keep it; the daemon begins a new one"
    try:
        if path.stat().st_size <= QUICK_JOURNAL_BYTES:
            report = verify(path)
            if report.problems:
                return Check("journal", "fail", f"{path}: {report.problems[0]}", remedy)
            return Check("journal", "ok", f"{path}: whole, {report.last_seq:,} rows so far")
        with Journal(path, read_only=True) as journal:
            rows = journal.last_seq()
    except LedgerError as error:
        return Check("journal", "fail", str(error), remedy)
    except PermissionError as error:
        return Check("journal", "fail", f"{path}: {error.strerror}", "run as the daemon's user")
    return Check(
        "journal", "ok",
        f"{path}: opens, {rows:,} rows so far; `outrider ledger verify` reads it through",
    )  # fmt: skip


def check_clock(path: Path, loaded: "LoadedConfig") -> Check:
    """Return whether this host's clock can be right."""
    now_s, zone = time.time(), loaded.config.timezone
    if now_s < _RELEASED_S:
        return Check(
            "clock", "fail", f"{clock(now_s, zone)} is long past", "set the clock; run NTP"
        )
    newest_s = None if _own_clock(loaded) else _newest_decision_s(path)
    if newest_s is not None and newest_s > now_s + _CLOCK_SLACK_S:
        ahead = duration(newest_s - now_s)
        return Check(
            "clock", "warn",
            f"the newest decision is of {clock(newest_s, zone)}, {ahead} ahead",
            "check the clocks of this host and of the batch system; run NTP on both",
        )  # fmt: skip
    return Check("clock", "ok", clock(now_s, zone))


def _newest_decision_s(path: Path) -> float | None:
    from outrider.journal import Journal

    try:
        with Journal(path, read_only=True) as journal:
            rows = journal.latest_decisions(1)
    except (LedgerError, OSError):
        return None  # none yet, or told by the check of the journal
    return rows[0][1].time_s if rows else None


def _own_clock(loaded: "LoadedConfig") -> bool:
    from outrider.plugins.finding import load_adapter
    from outrider.service.config.declarations import adapter_of

    kinds = [
        adapter_of(label, table)[0]
        for label, table in loaded.config.adapters.items()
        if f"adapters.{label}" not in loaded.broken
    ]
    return any(load_adapter(kind).own_clock for kind in kinds)


def daemon_there(loaded: "LoadedConfig") -> str | None:
    """The mode of the daemon that answers where this configuration listens, or None."""
    try:
        answer: dict[str, Any] = DaemonAddress.configured(loaded).ask("/api/v1/status")
    except (PeerError, ConfigurationError, OSError):
        return None
    return str(answer.get("mode", "unknown"))


def check_port(loaded: "LoadedConfig", there: str | None) -> Check:
    """Return whether the daemon could listen, or does already."""
    from outrider.service.config.declarations import listen_address

    host, port = listen_address(loaded.config)
    listen = loaded.config.listen
    if there is not None:
        return Check("port", "ok", f"{listen}: a daemon answers there, in mode {there}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        return Check(
            "port", "fail", f"{listen}: {error.strerror}, and no Outrider answers there",
            "name another address with `listen`, or stop who holds it",
        )  # fmt: skip
    return Check("port", "ok", f"{listen}: free")


def check_systemd() -> Check:
    """Return whether systemd would hear when the daemon is ready."""
    if os.environ.get("NOTIFY_SOCKET"):
        return Check("systemd", "ok", "NOTIFY_SOCKET is set: systemd listens to this process")
    if Path("/run/systemd/system").is_dir():
        return Check("systemd", "ok", "systemd runs here; the shipped unit (Type=notify) fits")
    return Check(
        "systemd", "warn", "systemd does not run here",
        "start `outrider run` by another supervisor; nothing else is lost",
    )  # fmt: skip


# -- broker check ----------------------------------------------------------------------------------
# Whether the broker to publish to lets us in, and passes on what we publish there.

PROBE_TOPIC: Final = "doctor"
"""Below our own topics: one empty message, not retained, is published there and waited for."""


def check_broker(loaded: "LoadedConfig") -> Iterator[Check]:
    """One check, where the configuration has a table [mqtt]."""
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
            "start the broker, or mend [mqtt]; what is decided meanwhile is published later",
        )  # fmt: skip
        return
    who = settings.username or "clients without a name"
    if probe.comes_back:
        found = f"{settings.address}: {who} may write and read {settings.base}/#"
        yield Check("mqtt", "ok", found)
        return
    denied = {
        True: f"takes what {who} publishes to {topic}, and does not let {who} read it",
        False: f"{who} may not publish to {topic}",
        None: f"what {who} publishes to {topic} does not come back: writing or reading is denied",
    }[probe.may_write]
    yield Check(
        "mqtt", "fail", f"{settings.address}: {denied}",
        f"let {who} write and read there; in Mosquitto's acl_file: "
        f"topic readwrite {settings.base}/#",
    )  # fmt: skip


# -- unit check ------------------------------------------------------------------------------------
# Whether the installed systemd units let the daemon do what its configuration names.


def check_unit(loaded: "LoadedConfig", root: Path = Path("/")) -> Iterator[Check]:
    """One or more checks, where a unit is installed that runs this configuration.

    Whoever runs the doctor by hand is not in the unit: what it keeps closed shows here alone.
    """
    from outrider.service.unit.drop_ins import units_to_enable
    from outrider.service.unit.installed import installed_unit, is_enabled
    from outrider.service.unit.needs import is_among, needs_of

    unit = installed_unit(root)
    if unit is None or unit.config is None or not _is_same(unit.config, Path(loaded.source)):
        return
    needs = needs_of(loaded)
    for name in units_to_enable(needs):
        if not is_enabled(name, root):
            yield Check(
                "unit", "warn", f"{name} is not enabled, and this configuration needs it",
                f"outrider install-service --config {shown(loaded.source)} writes it; then "
                f"systemctl enable --now {name}",
            )  # fmt: skip
    blocked = [
        f"{peer.what} {peer.host} ({address})"
        for peer in needs.peers
        for address in peer.addresses
        if unit.denies and not is_among(address, unit.allowed)
    ]
    if not blocked:
        yield Check("unit", "ok", f"{unit.path}: whom the daemon connects to may be reached")
        return
    yield Check(
        "unit", "fail",
        f"{unit.path} keeps the daemon from {', '.join(blocked)} (IPAddressDeny)",
        f"outrider install-service --config {shown(loaded.source)} writes the drop-in "
        "outrider.service.d/50-network.conf; or add IPAddressAllow= to one of your own. Then "
        "systemctl daemon-reload, and restart",
    )  # fmt: skip


def _is_same(one: Path, other: Path) -> bool:
    return one.resolve() == other.resolve()


# -- lever checks ----------------------------------------------------------------------------------
# Whether each lever works: tried on a job of its own.


def check_levers(loaded: "LoadedConfig") -> Iterator[Check]:
    """The findings of all levers of all adapters, as they come."""
    from outrider.service.config.reading import state_folder
    from outrider.service.daemon.levers import make_levers
    from outrider.service.daemon.sources import make_adapters

    levers = make_levers(make_adapters(loaded, {}), state_folder(loaded))
    if not levers:
        yield Check("levers", "warn", "no adapter here can change anything", "shadow is all it can")
    for label, of_adapter in levers.items():
        for lever in of_adapter:
            name = f"lever {label}: {lever.name}"
            try:
                found = [Check(f"{name}: {what}", *rest) for what, *rest in lever.prove()]  # type: ignore[arg-type]
            except OutriderError as error:
                found = [Check(name, "fail", str(error), "mend that, then try again")]
            except Exception as error:  # noqa: BLE001 - a stranger's code; it must not hide the rest
                found = [Check(name, "fail", f"{type(error).__name__}: {error}", "report it")]
            finally:
                lever.close()
            untried = "cannot be tried without a job of a user's"
            yield from found or [Check(name, "warn", untried, "try it in a canary")]
