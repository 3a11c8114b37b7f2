"""Reading of a configuration file: Outrider's own settings are validated, those of plugins not.

Commands that only query the daemon, or read its state directory, need no more than this.
"""

import os
import tomllib
from collections.abc import Mapping
from math import isinf
from pathlib import Path
from typing import Any, Final, NamedTuple, get_type_hints

import msgspec

from outrider.model.errors import ConfigurationError
from outrider.model.localtime import time_zone
from outrider.model.machines import OpeningHours
from outrider.model.settings import (
    LineOf,
    Place,
    TomlLines,
    build,
    describe,
    kind_text,
    limits_text,
    no_lines,
    toml_text,
    unwrapped,
    wrong_value,
)
from outrider.service.config.declarations import (
    SOCKET_NAME,
    ClusterSettings,
    Config,
    listen_address,
)
from outrider.service.config.optional_tables import ActingSettings, PublishSettings, TwinSettings

_TABLES: Mapping[str, type[msgspec.Struct]] = {
    "acting": ActingSettings,
    "mqtt": PublishSettings,
    "twin": TwinSettings,
}


class ReadConfig(msgspec.Struct, frozen=True):
    """A configuration whose own settings are valid, with the file it came from."""

    config: Config
    source: str
    line_of: LineOf = no_lines
    """A function that finds the line of a key in the file."""

    @property
    def place(self) -> Place:
        """The file as a whole, for error messages."""
        return Place(self.source, (), self.line_of)


def read_config(path: Path) -> ReadConfig:
    """Read a file and validate Outrider's own settings; no plugin is loaded.

    Raises:
        ConfigurationError: the file is missing or wrong; names file, place and value.
    """
    given, line_of = read_tables(path)
    own = build_own(given, Place(str(path), (), line_of))
    read = ReadConfig(own, str(path), line_of)
    check_zone(read)
    check_listen(read)
    check_doors(read)
    return read


def read_tables(path: Path) -> tuple[dict[str, Any], LineOf]:
    """Return the tables of a file, and the lines of its keys. Raises `ConfigurationError`."""
    try:
        text = path.read_text(encoding="utf-8")
        given = tomllib.loads(text)
    except OSError as error:
        raise ConfigurationError(
            f"{path}: cannot be read: {error.strerror}; expected a file as "
            "`outrider check-config --example` prints it"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f'{path}: not valid TOML: {error}; expected lines like mode = "shadow", below '
            "headings like [adapters.pool]"
        ) from error
    except RecursionError as error:
        raise ConfigurationError(
            f"{path}: not valid TOML: nested too deep; expected tables and lists at most a few deep"
        ) from error
    return given, TomlLines(text)


def build_own(given: Mapping[str, Any], place: Place) -> Config:
    """Return Outrider's own settings, validated; those of plugins are kept unchecked.

    Raises `ConfigurationError`: a key or value is wrong; names file, place and value.
    """
    clusters = given.get("clusters")
    for name, settings in clusters.items() if isinstance(clusters, dict) else ():
        if isinstance(settings, dict):
            _check_cluster(settings, place.inside("clusters", name))
    for name, record in _TABLES.items():
        if isinstance(given.get(name), dict):
            build(record, given[name], place.inside(name))
    return build(Config, given, place)


def _check_cluster(given: Mapping[str, Any], place: Place) -> None:
    settings = build(ClusterSettings, given, place)
    try:
        OpeningHours(settings.open)
    except ConfigurationError as error:
        raise ConfigurationError(f'{place.of(["open"])}: "open": {error}') from error


def check_zone(read: ReadConfig) -> None:
    """Refuse an unknown time zone. Raises `ConfigurationError`."""
    try:
        time_zone(read.config.timezone)
    except ConfigurationError as error:
        right = 'an IANA name, as in timezone = "Europe/Berlin"'
        raise wrong_value(read.place, ("timezone",), read.config.timezone, right) from error


def check_listen(read: ReadConfig) -> None:
    """Refuse to listen beyond loopback without TLS and a token. Raises `ConfigurationError`."""
    config, where = read.config, read.place.of(["listen"])
    try:
        host, _ = listen_address(config)
    except ConfigurationError as error:
        raise ConfigurationError(f"{where}: {error}") from error
    if host in ("127.0.0.1", "::1", "localhost"):
        return
    missing = [key for key in ("tls_cert", "tls_key", "token_file") if not getattr(config, key)]
    if missing:
        raise ConfigurationError(
            f'{where}: "listen" = {toml_text(config.listen)} is beyond loopback and needs '
            f'{", ".join(missing)}; or listen on loopback, as in listen = "127.0.0.1:9690"'
        )


def check_doors(read: ReadConfig) -> None:
    """Refuse a socket path or host names that clients cannot use. Raises `ConfigurationError`."""
    config, place = read.config, read.place
    if config.socket is not None and not Path(config.socket).is_absolute():
        raise ConfigurationError(
            f'{place.of(["socket"])}: "socket" = {toml_text(config.socket)}: expected a '
            'full path, as in socket = "/run/outrider/outrider.sock"'
        )
    for name in config.host_names:
        if not name.strip() or any(sign in name for sign in "/@*, ") or name.count(":") == 1:
            raise ConfigurationError(
                f'{place.of(["host_names"])}: "host_names" has {toml_text(name)}: expected a '
                'name alone, without scheme and port, as in host_names = ["outrider.example.org"]'
            )


# -- state folder ----------------------------------------------------------------------------------
# The folder of a daemon's state, also for commands that need nothing else of the daemon.

JOURNAL_NAME: Final = "journal.sqlite"
TOKEN_NAME: Final = "token"  # noqa: S105 - the name of a file
"""Name of the file whose token shows users' names; `outrider token` creates it."""


def state_folder(config: ReadConfig) -> Path:
    """Return the state directory: systemd's, else the configured one."""
    given = os.environ.get("STATE_DIRECTORY", "").split(":")[0]
    return Path(given or config.config.state_dir)


def own_socket(config: ReadConfig) -> Path:
    """Return the socket of a daemon without `socket` and systemd: in its state directory."""
    return state_folder(config) / SOCKET_NAME


# -- setting words ---------------------------------------------------------------------------------
# Descriptions of settings from their declaration: kind of value, range, purpose.


class SettingWords(NamedTuple):
    """One setting, described for people.

    Attributes:
        name: the key.
        kind: the kind of value: ``number``, ``text``, ``one of "observe", "shadow"``.
        limits: ``0 or more``, ``more than 0, at most 1``; empty if any value is allowed.
        default: the value if the file does not set it; None: unset.
        required: there is no default.
        description: the purpose of the setting.
    """

    name: str
    kind: str
    limits: str
    default: Any
    required: bool
    description: str

    @property
    def default_text(self) -> str:
        """The default as TOML; empty if there is none."""
        return "" if self.default is None else toml_text(self.default)

    def as_dict(self) -> dict[str, Any]:
        """Return all fields as JSON types; an infinite default is the text ``inf``."""
        infinite = isinstance(self.default, float) and isinf(self.default)
        return self._asdict() | ({"default": toml_text(self.default)} if infinite else {})


def settings_of(record: type[msgspec.Struct]) -> list[SettingWords]:
    """Return the settings of a record, in the order of their declaration."""
    hints = get_type_hints(record, include_extras=True)
    fields = {field.encode_name: field.name for field in msgspec.structs.fields(record)}
    described = []
    for setting in describe(record):
        kind, metas = unwrapped(hints[fields[setting.name]])
        described.append(
            SettingWords(
                name=setting.name,
                kind=kind_text(kind),
                limits=limits_text(metas),
                default=None if setting.required else setting.default,
                required=setting.required,
                description=next((m.description for m in metas if m.description), ""),
            )
        )
    return described
