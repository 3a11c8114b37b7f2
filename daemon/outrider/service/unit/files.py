"""The files of the service of a configuration, and notes for its administrator."""

import hashlib
import os
import pwd
import sys
import sysconfig
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final, NamedTuple

from outrider.model.deployment import TOKENS_PREFIX
from outrider.model.errors import ConfigurationError
from outrider.service.config.loaded import LoadedConfig
from outrider.service.unit.drop_ins import (
    SYSTEM,
    capabilities_text,
    command_text,
    helper_texts,
    network_text,
    reading_text,
    release_texts,
    secrets_text,
    sysusers_text,
    tmp_text,
    twin_texts,
    units_to_enable,
)
from outrider.service.unit.installed import Reading, reading_of
from outrider.service.unit.needs import UnitNeeds, needs_of

# -- writing ---------------------------------------------------------------------------------------
# Repeatable writing of the service's files, which never overwrites a file that an admin changed.

_MARK: Final = "# Made by `outrider install-service`, which writes beside it once it was changed: "
"""First line of a written file, up to its digest. Changing it would orphan installed files."""
_NEW_SUFFIX: Final = ".new"
_MODE: Final = 0o644


class UnitFile(NamedTuple):
    """A file of the service.

    Attributes:
        path: its path.
        text: its contents; empty: it is not needed, and is removed if it is unchanged.
    """

    path: Path
    text: str


class Written(NamedTuple):
    """The result of writing a file.

    Attributes:
        path: its path, also if nothing was written.
        did: ``written``, ``replaced``, ``unchanged``, ``beside``, ``removed`` or ``kept``.
        why: the reason for ``beside`` and ``kept``.
    """

    path: Path
    did: str
    why: str = ""


def marked(text: str) -> str:
    """Return a text with a first line that holds its digest, to detect later changes."""
    return f"{_MARK}{_digest(text)}\n{text}"


def is_ours(text: str) -> bool:
    """Return True if a file is unchanged since it was written here."""
    first, _, rest = text.partition("\n")
    return first.startswith(_MARK) and first.removeprefix(_MARK) == _digest(rest)


def write(file: UnitFile, root: Path, *, dry_run: bool = False) -> Written | None:
    """Write a file below a root, or next to a changed one as ``.new``; None: nothing to do.

    Raises:
        OSError: it cannot be read or written.
    """
    path = root / file.path.relative_to("/")
    there = path.read_text(encoding="utf-8", errors="replace") if path.exists() else None
    if not file.text:
        return _remove(path, there, dry_run=dry_run)
    text = marked(file.text)
    if there is None:
        _put(path, text, dry_run=dry_run)
        return Written(path, "written")
    if there == text:
        return Written(path, "unchanged")
    if is_ours(there) or there == file.text:
        _put(path, text, dry_run=dry_run)
        return Written(path, "replaced")
    new = path.with_name(path.name + _NEW_SUFFIX)
    _put(new, text, dry_run=dry_run)
    return Written(new, "beside", f"{path} was changed by hand, and is kept")


def _remove(path: Path, there: str | None, *, dry_run: bool) -> Written | None:
    if there is None:
        return None
    if not is_ours(there):
        return Written(path, "kept", "no longer needed, but was changed by hand")
    if not dry_run:
        path.unlink()
    return Written(path, "removed")


def _put(path: Path, text: str, *, dry_run: bool) -> None:
    if dry_run:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.part")
    part.write_text(text, encoding="utf-8")
    part.chmod(_MODE)
    os.replace(part, path)  # noqa: PTH105 - the same


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


# -- files -----------------------------------------------------------------------------------------

UNIT: Final = SYSTEM / "outrider.service"
DROP_INS: Final = SYSTEM / "outrider.service.d"
SYSUSERS: Final = Path("/etc/sysusers.d/outrider.conf")
USER: Final = "outrider"
"""Name of the service's user, the same as the unit's."""
_PACKAGED: Final = (Path("/usr/lib/systemd/system"), Path("/lib/systemd/system"))
_OWN_COMMAND: Final = (Path("/usr/bin/outrider"), Path("/etc/outrider/outrider.toml"))
"""Command and configuration of the shipped unit."""
_OWN_CREDENTIALS: Final = ("mqtt-password", "http-token", "tls-key.pem")
"""Credentials that the shipped unit loads from `_STORE`."""
_STORE: Final = Path("/etc/credstore")
_SETTINGS: Final = Path("/etc/outrider")


class ServiceFiles(NamedTuple):
    """The files to install, with notes.

    Attributes:
        files: all of them, in the order of writing.
        notes: tasks and facts for an admin, a sentence each.
        enable: units to enable besides the daemon's.
    """

    files: list[UnitFile]
    notes: list[str]
    enable: list[str]


def service_files(loaded: LoadedConfig) -> ServiceFiles:
    """Return the files of the service that runs a configuration with this interpreter.

    Raises:
        ConfigurationError: this Outrider was installed without a unit, or without a command.
    """
    needs = needs_of(loaded)
    uid = _uid_of(USER)
    reading = reading_of(needs.files, uid)
    notes = list(needs.notes)
    notes += [f"{path}: the service may not read it: {why}" for path, why in reading.unreadable]
    command, config = _command(), Path(loaded.source).absolute()

    def shipped(name: str) -> str:
        """Return the text of a unit; empty if a package has installed it."""
        packaged = next((f / name for f in _PACKAGED if (f / name).exists()), None)
        if packaged is None:
            return shipped_unit(name)
        notes.append(f"{packaged} exists already: no unit is written")
        return ""

    secrets = _secrets(loaded, needs, uid, notes)
    groups = [loaded.config.socket_group, loaded.config.admin_group]
    extra = [g for g in (loaded.config.socket_group,) if g != USER]
    runs = command_text((command, "run", "--config", config))
    allowed = {
        "50-network.conf": (
            network_text(needs.peers, needs.unknown_hosts)
            if needs.peers or needs.unknown_hosts
            else ""
        ),
        "50-tmp.conf": tmp_text(USER, needs.shared_tmp) if needs.shared_tmp else "",
        "50-capabilities.conf": (
            capabilities_text(needs.capabilities) if needs.capabilities else ""
        ),
        "50-reading.conf": _reading(reading, extra, needs),
        "50-secrets.conf": secrets,
    }
    texts = {
        UNIT: shipped(UNIT.name),
        SYSUSERS: sysusers_text(USER, groups),
        DROP_INS / "50-command.conf": "" if (command, config) == _OWN_COMMAND else runs,
        **{DROP_INS / name: text for name, text in allowed.items()},
        **release_texts(needs, command, config, allowed, shipped),
        **twin_texts(needs, command, config, allowed, shipped, USER),
    }
    for helper in needs.helpers:
        texts |= helper_texts(helper, USER, shipped)
    files = [UnitFile(*one) for one in texts.items()]
    return ServiceFiles(files, notes, units_to_enable(needs))


def _reading(reading: Reading, extra: list[str], needs: UnitNeeds) -> str:
    groups = list(dict.fromkeys([*extra, *reading.groups]))
    if not (groups or reading.hidden or needs.environment):
        return ""
    return reading_text(groups, reading.hidden, needs.environment)


def _secrets(loaded: LoadedConfig, needs: UnitNeeds, uid: int | None, notes: list[str]) -> str:
    """Return the drop-in of credentials: those configured, and files that only root may read."""
    found: dict[str, str] = {}
    for name in needs.credentials:
        stored = name in _OWN_CREDENTIALS and (_STORE / name).exists()
        if (_SETTINGS / name).exists() and not stored:
            found[name] = str(_SETTINGS / name)
        elif not stored:
            notes.append(f"the credential {name} does not exist yet: put it into {_STORE / name}")
            if name not in _OWN_CREDENTIALS:
                found[name] = str(_STORE / name)
    closed = {path for path, _ in reading_of(needs.secrets, uid).unreadable}
    for path in needs.secrets:
        if path in closed and os.path.exists(path):  # noqa: PTH110 - never raises
            name = Path(path).name
            found[name] = path
            notes.append(
                f"the service may not read {path}; systemd passes it as a credential: use "
                f'"$CREDENTIALS_DIRECTORY/{name}" instead in {loaded.source}'
            )
    variables: list[str] = []
    for folder, variable in needs.token_folders.items():
        inside = [str(path) for path in Path(folder).iterdir() if path.is_file()]
        if reading_of(inside, uid).unreadable or reading_of([folder], uid).hidden:
            found[f"{TOKENS_PREFIX}{len(variables)}"] = folder
            variables.append(variable)
    return secrets_text(found, variables) if found else ""


def shipped_unit(unit: str = UNIT.name) -> str:
    """Return the text of a unit of this Outrider. Raises `ConfigurationError`."""
    name = f"systemd/{unit}"
    installed = Path(sysconfig.get_path("data")) / "share/outrider" / name
    checkout = Path(__file__).resolve().parents[4]
    places = [checkout / name] if (checkout / "pyproject.toml").is_file() else []
    places.append(installed)
    try:
        files = distribution("outrider").files or ()
    except PackageNotFoundError:
        files = ()
    places += [Path(str(file.locate())) for file in files if str(file).endswith(f"outrider/{name}")]
    for place in places:
        if place.is_file():
            return place.read_text(encoding="utf-8")
    raise ConfigurationError(
        f"this Outrider was installed without {unit}; expected {installed}, as pip installs it"
    )


def _command() -> Path:
    """Return the path of this interpreter's command `outrider`. Raises `ConfigurationError`."""
    command = Path(sysconfig.get_path("scripts")) / "outrider"
    if not command.is_file():
        raise ConfigurationError(
            f"{command}: no such command for {sys.executable}; expected an Outrider that was "
            "installed by pip into its own environment"
        )
    packaged = _OWN_COMMAND[0]  # in a Debian package a link to this very command
    return packaged if packaged.exists() and packaged.samefile(command) else command


def _uid_of(user: str) -> int | None:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        return None
