"""Access of commands to the configuration: its file, state directory and daemon address."""

from pathlib import Path
from typing import TYPE_CHECKING

from outrider.cli.daemon import DaemonAddress, default_socket
from outrider.model.errors import ConfigurationError
from outrider.model.quantities import clock

if TYPE_CHECKING:
    from outrider.journal import Journal
    from outrider.service.config.loaded import LoadedConfig
    from outrider.service.config.reading import ReadConfig


def load(path: Path) -> "LoadedConfig":
    """Read and check a configuration file. Raises `ConfigurationError`, `PluginError`."""
    from outrider.service.config.loaded import load_config

    return load_config(path)


def read(path: Path | None) -> "ReadConfig | None":
    """Read a configuration without loading its plugins.

    For commands that query the daemon or read its state directory: a broken adapter or policy
    must not stop them.

    Args:
        path: None if no configuration was given; the result is None then.

    Raises:
        ConfigurationError: the file is missing or wrong.
    """
    if path is None:
        return None
    from outrider.service.config.reading import read_config

    return read_config(path)


def journal_path(config: "ReadConfig | None") -> Path:
    """Return the path of this configuration's journal; systemd's state directory wins.

    Args:
        config: None for a daemon with the default state directory.
    """
    from outrider.service.config.declarations import Config
    from outrider.service.config.reading import JOURNAL_NAME, ReadConfig, state_folder

    return state_folder(config or ReadConfig(Config(), "the default")) / JOURNAL_NAME


def daemon_address(
    url: str | None,
    config: "ReadConfig | None",
    token_file: Path | None = None,
    ca: Path | None = None,
) -> DaemonAddress:
    """Return the daemon's address: the URL, else the configuration's, else the default.

    Args:
        url: None for the daemon of the configuration, or of the shipped unit.
        config: None where no configuration was given.
        token_file: wins over the configuration's.
        ca: wins over the configuration's certificate.

    Raises:
        ConfigurationError: both were given.
    """
    if url is not None and config is not None:
        raise ConfigurationError("--url and --config: use one of them")
    if config is not None:
        address = DaemonAddress.configured(config)
    elif url is not None:
        address = DaemonAddress(url)
    else:
        address = DaemonAddress(socket=default_socket(), finds_socket=True)
    if token_file is not None:
        address = address._replace(token_file=str(token_file))
    return address if ca is None else address._replace(ca=str(ca))


# -- journals --------------------------------------------------------------------------------------
# Journals as commands read them: opened read-only, with times as text.


def open_journal(file: Path) -> "Journal":
    """Open a journal read-only, even while a daemon writes it. Raises `LedgerError`."""
    from outrider.journal import Journal

    return Journal(file, read_only=True)


def zone_of(journal: "Journal") -> str:
    """Return the time zone of the journal's site."""
    from outrider.journal import TIMEZONE_KEY

    zone: str = journal.meta(TIMEZONE_KEY, "UTC")
    return zone


def time_in_words(time_s: float, zone: str) -> str:
    """Return Unix times as dates at the site, times of a trace as seconds since its start."""
    return clock(time_s, zone) if time_s > 1e9 else f"{time_s:.1f} s"
