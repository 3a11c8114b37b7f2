"""Checks of the daemon's surroundings: each returns what it found and how to fix it."""

import json
import os
import shlex
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from outrider.cli.configuration import journal_path, load
from outrider.cli.daemon import DaemonAddress, DaemonStartsError
from outrider.cli.doctor.sources import Check, check_broker, this_user
from outrider.cli.printing import shown
from outrider.model.errors import ConfigurationError, LedgerError, OutriderError, PeerError
from outrider.model.quantities import clock, duration

if TYPE_CHECKING:
    from outrider.service.config.loaded import LoadedConfig

MIN_FREE_BYTES: Final = 50 * 1024**2
LOW_FREE_BYTES: Final = 1024**3
MAX_VERIFIED_BYTES: Final = 64 * 1024**2
"""Maximum size of a journal that is verified in full; a larger one is only opened and counted."""
_CLOCK_SLACK_S: Final = 60.0
AS_SERVICE: Final = "as the service"
"""Name of the check whether the service's own permissions were examined."""
_FIRST_ANSWERS_S: Final = 10.0
_NEW: Final = ("no sign of life yet", "its last batch waits")
"""Beginnings of what the daemon says of an adapter that has not answered yet."""
_EARLIEST_S: Final = 1_767_225_600.0  # 2026-01-01: a clock before Outrider's first year is wrong


def examine(config: Path, *, as_service: bool = False) -> Iterator[Check]:
    """Yield all checks, the configuration first, since the others need it.

    Args:
        config: the daemon's configuration.
        as_service: this process runs in the service's sandbox already.
    """
    yield from check_plugins()
    try:
        loaded = load(config)
    except OutriderError as error:
        yield Check("configuration", "fail", str(error), "correct it; see `outrider check-config`")
        return
    yield Check("configuration", "ok", f"{shown(config)}: mode {loaded.config.mode}")
    journal = journal_path(loaded)
    daemon = running_daemon(loaded)
    if daemon is None and not as_service and is_installed(loaded):
        found = examined_in_unit(Path(loaded.source))
        if not isinstance(found, str):
            yield Check(AS_SERVICE, "ok", "examined with its user, in its sandbox")
            yield from found
            return
        yield Check(
            AS_SERVICE, "warn",
            f"no daemon answers, and the service itself was not examined: {found}; what follows "
            f"is what {this_user()} may do, outside of the service's sandbox",
            f"run it as root: outrider doctor --config {shown(loaded.source)}",
        )  # fmt: skip
    if daemon is None:
        yield check_state_folder(journal.parent)
    else:
        yield recorded_by(daemon, journal.parent)
    yield check_free_space(journal.parent)
    yield check_journal(journal, daemon is not None)
    yield check_clock(journal, loaded)
    yield check_port(loaded, None if daemon is None else str(daemon.get("mode", "unknown")))
    from outrider.cli.doctor.secret_files import check_secret_files

    yield from check_secret_files(loaded)
    from outrider.cli.doctor.sources import check_sources

    yield from check_sources(loaded, daemon)

    yield from check_broker(loaded)
    yield check_systemd()

    yield from check_unit(loaded)
    from outrider.cli.doctor.sources import check_memory

    if is_installed(loaded):
        yield from check_memory(daemon)


def check_plugins() -> Iterator[Check]:
    """Check that every plugin loads; an unused broken plugin does no harm.

    A plugin that needs a missing package is reported but is not a warning: if the configuration
    uses it, the check of the configuration or of its source fails.
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
    """Check that the current user can write the state directory."""
    name = "state directory"
    try:
        exists = folder.is_dir()
    except PermissionError as error:
        return Check(
            name, "fail", f"{folder}: {this_user()} may not look there: {error.strerror}",
            "run the doctor as root or as the daemon's user",
        )  # fmt: skip
    if not exists:
        parent = next((p for p in folder.parents if p.is_dir()), Path("/"))
        if os.access(parent, os.W_OK | os.X_OK):
            return Check(name, "ok", f"{folder}: does not exist yet; the daemon will create it")
        return Check(
            name, "fail", f"{folder}: does not exist, and cannot be created in {parent}",
            f"create it for the daemon's user: install -d -m 700 {folder}",
        )  # fmt: skip
    try:
        with tempfile.TemporaryFile(dir=folder) as file:
            file.write(b"\0")
    except OSError as error:
        return Check(
            name, "fail", f"{folder}: cannot be written: {error.strerror}",
            "run the doctor as the daemon's user, or make that user the folder's owner",
        )  # fmt: skip
    return Check(name, "ok", f"{folder}: can be written")


def recorded_by(daemon: dict[str, Any], folder: Path) -> Check:
    """Check that the running daemon can write its state directory.

    Args:
        daemon: status of the daemon.
        folder: the directory.
    """
    name, journal = "state directory", daemon.get("ledger") or {}
    if journal.get("failure"):
        return Check(
            name, "fail", f"{folder}: the running daemon cannot write there: {journal['failure']}",
            "free some space, or make the daemon's user the folder's owner",
        )  # fmt: skip
    return Check(name, "ok", f"{folder}: the running daemon records there")


def check_free_space(folder: Path) -> Check:
    """Check that the disk has free space for the journal."""
    place = next(p for p in (folder, *folder.parents) if os.path.isdir(p))  # noqa: PTH112
    free = shutil.disk_usage(place).free
    found = f"{free / 1024**3:.1f} GB free at {place}"
    remedy = "free some space, or shorten retention_days"
    if free < MIN_FREE_BYTES:
        return Check("free space", "fail", found, remedy)
    if free < LOW_FREE_BYTES:
        return Check("free space", "warn", found, remedy)
    return Check("free space", "ok", found)


def check_journal(path: Path, is_recorded: bool = False) -> Check:
    """Check that the journal opens and is intact.

    Args:
        path: the journal.
        is_recorded: a running daemon writes it.
    """
    from outrider.journal import Journal, verify

    remedy = "move it away and keep it; the daemon will create a new one"
    try:
        if not path.exists():
            return Check("journal", "ok", f"{path}: none yet; the daemon will create it")
        if path.stat().st_size <= MAX_VERIFIED_BYTES:
            report = verify(path)
            if report.problems:
                return Check("journal", "fail", f"{path}: {report.problems[0]}", remedy)
            return Check("journal", "ok", f"{path}: intact, {report.last_seq:,} rows so far")
        with Journal(path, read_only=True) as journal:
            rows = journal.last_seq()
    except LedgerError as error:
        return Check("journal", "fail", str(error), remedy)
    except PermissionError as error:
        state: Literal["warn", "fail"] = "warn" if is_recorded else "fail"
        found = f"{path}: not examined: it is private to the daemon's user ({error.strerror})"
        return Check("journal", state, found, "run the doctor as root or as the daemon's user")
    return Check(
        "journal", "ok",
        f"{path}: opens, {rows:,} rows so far; `outrider ledger verify` checks all of it",
    )  # fmt: skip


def check_clock(path: Path, loaded: "LoadedConfig") -> Check:
    """Check that this host's clock is plausible."""
    now_s, zone = time.time(), loaded.config.timezone
    if now_s < _EARLIEST_S:
        return Check(
            "clock", "fail", f"{clock(now_s, zone)} is in the past", "set the clock; run NTP"
        )
    newest_s = None if _own_clock(loaded) else _newest_decision_s(path)
    if newest_s is not None and newest_s > now_s + _CLOCK_SLACK_S:
        ahead = duration(newest_s - now_s)
        return Check(
            "clock", "warn",
            f"the newest decision is of {clock(newest_s, zone)}, {ahead} in the future",
            "check the clocks of this host and of the batch system; run NTP on both",
        )  # fmt: skip
    return Check("clock", "ok", clock(now_s, zone))


def _newest_decision_s(path: Path) -> float | None:
    from outrider.journal import Journal

    try:
        with Journal(path, read_only=True) as journal:
            rows = journal.latest_decisions(1)
    except (LedgerError, OSError):
        return None  # no journal yet, or reported by the check of the journal
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


def running_daemon(loaded: "LoadedConfig") -> dict[str, Any] | None:
    """Return the status of the daemon that answers at the configured address, or None.

    A daemon that has just been started has some seconds to read its journal, and for its adapters'
    first answers. After these its adapters are down because it is still starting.
    """
    until_s = time.monotonic() + _FIRST_ANSWERS_S
    status: dict[str, Any]
    while True:
        try:
            status = DaemonAddress.configured(loaded).ask("/api/v1/status")
        except DaemonStartsError as error:
            down = {"up": False, "problem": f"the daemon is still starting: {error}"}
            labels = loaded.config.adapters
            status = {"mode": "not known yet", "adapters": [{"label": b, **down} for b in labels]}
            waits = True
        except (PeerError, ConfigurationError, OSError):
            return None
        else:
            adapters = status.get("adapters") or ()
            waits = not adapters or any(
                not one["up"] and one["problem"].startswith(_NEW) for one in adapters
            )
        if not waits or time.monotonic() > until_s:
            return status
        time.sleep(0.5)


def check_port(loaded: "LoadedConfig", running_mode: str | None) -> Check:
    """Check that the daemon can listen on its address, or already does."""
    from outrider.service.config.declarations import listen_address

    host, port = listen_address(loaded.config)
    listen = loaded.config.listen
    if running_mode is not None:
        return Check("port", "ok", f"{listen}: a daemon answers there, in mode {running_mode}")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind((host, port))
    except OSError as error:
        return Check(
            "port", "fail", f"{listen}: {error.strerror}, and no Outrider answers there",
            "set another `listen` address, or stop the process that uses it",
        )  # fmt: skip
    return Check("port", "ok", f"{listen}: free")


def check_systemd() -> Check:
    """Check that systemd would notice when the daemon is ready."""
    if os.environ.get("NOTIFY_SOCKET"):
        return Check("systemd", "ok", "NOTIFY_SOCKET is set: systemd listens to this process")
    if Path("/run/systemd/system").is_dir():
        return Check("systemd", "ok", "systemd runs here; the shipped unit (Type=notify) works")
    return Check(
        "systemd", "warn", "systemd does not run here",
        "start `outrider run` with another supervisor; everything else works",
    )  # fmt: skip


# -- unit check ------------------------------------------------------------------------------------
# Permissions of the installed systemd units, against the needs of the configuration.


def check_unit(loaded: "LoadedConfig", root: Path = Path("/")) -> Iterator[Check]:
    """Check the installed systemd unit, if it runs this configuration.

    The doctor itself runs outside the unit, so only this check sees what the unit blocks.
    """
    from outrider.service.unit.drop_ins import units_to_enable
    from outrider.service.unit.installed import installed_unit, is_enabled
    from outrider.service.unit.needs import is_among, needs_of

    unit = installed_unit(root)
    if unit is None or not is_installed(loaded, root):
        return
    needs = needs_of(loaded)
    for name in units_to_enable(needs):
        if not is_enabled(name, root):
            yield Check(
                "unit", "warn", f"{name} is not enabled, and this configuration needs it",
                f"outrider install-service --config {shown(loaded.source)}; then "
                f"systemctl enable --now {name}",
            )  # fmt: skip
    blocked = [
        f"{peer.what} {peer.host} ({address})"
        for peer in needs.peers
        for address in peer.addresses
        if unit.denies and not is_among(address, unit.allowed)
    ]
    if needs.shared_tmp and unit.own_tmp:
        yield Check(
            "unit", "fail", f"{unit.path} has a /tmp of its own. {needs.shared_tmp}",
            f"outrider install-service --config {shown(loaded.source)} writes the drop-in "
            "outrider.service.d/50-tmp.conf. Then systemctl daemon-reload, and restart",
        )  # fmt: skip
        return
    if not blocked:
        yield Check("unit", "ok", f"{unit.path}: allows all hosts that the daemon connects to")
        return
    yield Check(
        "unit", "fail",
        f"{unit.path} blocks {', '.join(blocked)} (IPAddressDeny)",
        f"outrider install-service --config {shown(loaded.source)} writes the drop-in "
        "outrider.service.d/50-network.conf; or add IPAddressAllow= to your own drop-in. Then "
        "systemctl daemon-reload, and restart",
    )  # fmt: skip


def is_installed(loaded: "LoadedConfig", root: Path = Path("/")) -> bool:
    """Return whether the installed systemd unit runs this configuration."""
    from outrider.service.unit.installed import installed_unit

    unit = installed_unit(root)
    return (
        unit is not None
        and unit.config is not None
        and unit.config.resolve() == Path(loaded.source).resolve()
    )


# -- as the service --------------------------------------------------------------------------------
# The same checks in a transient unit: the daemon's unit and drop-ins, with another command.

_UNIT: Final = "outrider.service"
_EXAMINED_WITHIN_S: Final = 150
_INSTEAD: Final = """
[Service]
Type=oneshot
ExecStart=
ExecStart={command}
ExecReload=
ExecStop=
ExecStopPost=
Restart=no
WatchdogSec=0
SuccessExitStatus=0 1
TimeoutStartSec=120
RuntimeDirectory=
RuntimeDirectory=outrider-doctor
StandardOutput=truncate:{output}
StandardError=journal
"""


def examined_in_unit(config: Path, run: Path = Path("/run")) -> list[Check] | str:
    """Return the checks by a process with the service's user and sandbox; a text: why not.

    Args:
        config: the configuration.
        run: folder of runtime data, in which systemd looks for units.
    """
    if os.geteuid() != 0:
        return f"only root may start a unit, and this is {this_user()}"
    units = run / "systemd" / "system"
    if not units.is_dir():
        return "systemd does not run here"
    name = f"outrider-doctor-{os.getpid()}.service"
    folder = Path(tempfile.mkdtemp(prefix="outrider-doctor-", dir=run))
    try:
        text = _systemctl("cat", _UNIT)
        output = folder / "checks.json"
        command = _doctor_command(text, config)
        user = "" if "\nUser=" in text else f"User={_UNIT.partition('.')[0]}\n"
        unit = f"{text}{_INSTEAD.format(command=command, output=output)}{user}"
        (units / name).write_text(unit, encoding="utf-8")
        _systemctl("daemon-reload")
        try:
            _systemctl("start", name)
        finally:
            (units / name).unlink()
            _systemctl("daemon-reload")
        return [Check(**one) for one in json.loads(output.read_bytes())["checks"]]
    except (OSError, ValueError, KeyError, TypeError, subprocess.SubprocessError) as error:
        return f"a transient unit like {_UNIT} failed: {_why(error)}"
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _systemctl(*words: str) -> str:
    done = subprocess.run(  # noqa: S603 - fixed words
        ["systemctl", *words], capture_output=True, text=True, check=True,  # noqa: S607
        timeout=_EXAMINED_WITHIN_S, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    return done.stdout


def _doctor_command(unit: str, config: Path) -> str:
    """Return the doctor's command line, by the program that the unit runs.

    Raises:
        ValueError: the unit runs another program.
    """
    lines = [line.strip() for line in unit.replace("\\\n", " ").splitlines()]
    commands = [line.removeprefix("ExecStart=") for line in lines if line.startswith("ExecStart=")]
    words = shlex.split(commands[-1] if commands else "")
    if "run" not in words:
        raise ValueError("its ExecStart= is not `outrider run`")
    program = words[: words.index("run")]
    path = str(config.resolve())
    return shlex.join([*program, "doctor", "--config", path, "--json", "--as-service"])


def _why(error: Exception) -> str:
    if isinstance(error, subprocess.CalledProcessError):
        return str(error.stderr).strip() or str(error)
    return str(error)
